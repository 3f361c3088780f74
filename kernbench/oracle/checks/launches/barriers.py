"""Group l, barriers: the signals of all PEs of a launch, in a cube and between cubes."""

from collections.abc import Iterator

from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.kernels.launches import BarrierTimes, PeOfSip
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.core import dtypes
from runtime.device.launches.launch import launch_on
from runtime.device.rank.rank_state import running_rank
from runtime.language import tl

LATE_ELEMENTS = 65536
"""A vector whose time is longer than that of all signals but the last."""


def barriers(file: TopologyFile) -> list[Check]:
    """Barriers of all PEs of a cube and of the SIP, with the first and the last PE as the last."""
    return [*_checks(file)]


def _checks(file: TopologyFile) -> Iterator[Check]:
    cubes = {"cube": [file.cubes - 1], "sip": list(range(file.cubes))}
    for name, chosen in cubes.items():
        pes = [(cube, pe) for cube in chosen for pe in range(file.pes_per_cube)]
        for which, last in {"first": pes[0], "last": pes[-1]}.items():
            expected, measured = (
                BarrierTimes(file, pes).releases_ps(last),
                _took_ps(file, pes, last),
            )
            for end, pe in {
                "own": last,
                "slowest": max(expected, key=lambda pe: expected[pe]),
            }.items():
                yield Check(
                    id=f"l.barrier.{name}.{which}.{end}",
                    text=f"a barrier of {len(pes)} PEs, the {which} one comes last: its end, {end}",
                    formula="signals to M_CPU, first M_CPU and back",
                    expected=expected[pe],
                    measured=measured[pe],
                    unit="ps",
                )


def _took_ps(file: TopologyFile, pes: list[PeOfSip], last: PeOfSip) -> dict[PeOfSip, int]:
    """Time from the call of the last PE to the end of the kernel on each PE, behind the barrier."""

    def kernel() -> None:
        if (tl.program_id(1), tl.program_id(0)) == last:
            tl.zeros((LATE_ELEMENTS,), dtypes.int32)
        tl.barrier()

    def program(_rank: int) -> None:
        running_rank().device.wait(launch_on("barrier", kernel, (), [], pes))

    world = simulate(program, 1, topology=file.text, data=False)
    [(_, late)] = world.of("pe_math")
    return {
        (record.cube, record.pe): record.end_ps - late.end_ps for _, record in world.of("pe_cpu")
    }
