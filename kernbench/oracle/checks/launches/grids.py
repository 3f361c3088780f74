"""Group l, grids: programs are dealt round robin, and a PE runs its own one after the other."""

from collections.abc import Iterator

from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES, KernelCosts
from kernbench.oracle.theory.kernels.launches import LaunchTimes
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.core import dtypes
from runtime.core.device import Handle
from runtime.core.program_grid import ProgramGrid
from runtime.device.launches.launch import launch_on
from runtime.device.rank.rank_state import running_rank
from runtime.language import tl

ELEMENTS = 1024


def grids(file: TopologyFile) -> list[Check]:
    """Grids with one program, one or two for each PE, and one more than two for each."""
    return [*_checks(file.with_values({"host.launch_overhead_ns": 0}))]


def _checks(file: TopologyFile) -> Iterator[Check]:
    pes = [(cube, pe) for cube in range(file.cubes) for pe in range(file.pes_per_cube)]
    costs = KernelCosts(file, file["packet_bytes"])
    begin_ps = costs.commands.program_ps
    program_ps = begin_ps + costs.fill_ps(ELEMENTS * ITEM_BYTES)
    lengths = {
        "one": (1,),
        "each": (len(pes),),
        "rounds": (len(pes), 2),
        "more": (2 * len(pes) + 1,),
    }
    for name, of_axes in lengths.items():
        grid = ProgramGrid(of_axes)
        rounds = -(-grid.count // len(pes))
        handle = _launched(file, grid, pes)
        yield Check(
            id=f"l.grid.{name}",
            text=f"{grid.count} programs on {len(pes)} PEs: first start to last end",
            formula="most programs of a PE x (begin + kernel)",
            expected=rounds * program_ps,
            measured=handle.pe_exec_ps,
            unit="ps",
        )
        if name == "more":
            # Only the first PE has a program more than the others, so it reports last.
            times = LaunchTimes(file, pes, reporting=pes[0])
            yield Check(
                id="l.grid.launch",
                text=f"{grid.count} programs on {len(pes)} PEs: submission to answer",
                formula="one launch whose kernel is the programs of the first PE",
                expected=times.stream_ps(1, rounds * program_ps),
                measured=handle.total_ps,
                unit="ps",
            )


def _launched(file: TopologyFile, grid: ProgramGrid, pes: list[tuple[int, int]]) -> Handle:
    def program(_rank: int) -> Handle:
        handle = launch_on("fill", _fill, (), [], pes[: grid.count], grid=grid)
        running_rank().device.wait(handle)
        return handle

    return simulate(program, 1, topology=file.text, data=False).returned[0]


def _fill() -> None:
    """An operand that is computed from nothing: no access to memory, so no packet on any link."""
    tl.zeros((ELEMENTS,), dtypes.int32)
