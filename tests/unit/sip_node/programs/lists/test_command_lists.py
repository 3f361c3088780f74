"""The keys of launches: equal for launches of equal commands on equal PEs."""

from runtime.core.dtypes import float32
from runtime.core.program_grid import ProgramGrid
from runtime.core.requests import KernelLaunchMsg
from runtime.language import tl
from runtime.language.value import Pointer
from sip_node.programs.lists.command_lists import CommandLists


def halved(x: tl.Pointer) -> None:
    tl.store(x + tl.program_id(0), tl.load(x + tl.program_id(0), 1) * 0.5)


def launch(grid: ProgramGrid | None) -> KernelLaunchMsg:
    pes = ((0, 0), (0, 1))
    return KernelLaunchMsg("halved", halved, (Pointer(4096, float32),), pes, grid=grid)


def test_launches_that_deal_the_programs_of_a_grid_otherwise_have_other_keys():
    lists = CommandLists()
    grids = (
        None,
        ProgramGrid((4,)),
        ProgramGrid((4,), first=(0, 2)),
        ProgramGrid((4,), first=(0, 3)),
    )
    keys = [lists.launch_key(0, number, launch(grid)) for number, grid in enumerate(grids)]
    assert None not in keys
    assert len(set(keys)) == len(keys)
    assert lists.launch_key(0, 9, launch(ProgramGrid((4,), first=(0, 2)))) == keys[2]
