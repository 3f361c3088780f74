"""The keys of launches: equal for launches of equal commands on equal PEs."""

from collections.abc import Sequence

import pytest

from runtime.ccl.algorithms.tree import all_reduce
from runtime.core.dtypes import DType, float32, int32
from runtime.core.program_grid import ProgramGrid
from runtime.core.requests import KernelLaunchMsg, PerPe
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


def exchange(
    pointers: Sequence[int] = (4096, 8192), root: object = 1, dtype: DType = float32
) -> KernelLaunchMsg:
    pes = ((0, 0), (0, 1))
    each = PerPe({pe: Pointer(address, dtype) for pe, address in zip(pes, pointers, strict=True)})
    return KernelLaunchMsg("all_reduce", all_reduce, (each, root), pes, "queues", "a call")


def test_a_collective_that_equals_an_earlier_one_has_the_key_that_it_had():
    lists = CommandLists()
    first = lists.exchange_key(0, 1, exchange())
    assert first is not None
    assert lists.exchange_key(0, 2, exchange()) is first
    assert lists.exchange_key(1, 2, exchange()) == first


@pytest.mark.parametrize(
    "other",
    [
        exchange((4096, 9216)),
        exchange(root=2),
        exchange(root=True),
        exchange(root=1.0),
        exchange(dtype=int32),
    ],
)
def test_a_collective_with_another_argument_has_the_key_that_it_has_as_the_first(
    other: KernelLaunchMsg,
):
    lists = CommandLists()
    first = lists.exchange_key(0, 1, exchange())
    key = lists.exchange_key(0, 2, other)
    assert key is not None
    assert key != first
    expected = CommandLists().exchange_key(0, 1, other)
    assert expected is not None
    assert key.addresses == expected.addresses
