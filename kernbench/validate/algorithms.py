"""The all-reduces beside the ring: the time of a small and of a large one by closed form, bytes on links, sums."""

from collections.abc import Iterator
from math import ceil

from kernbench.validate.accesses import Accesses
from kernbench.validate.all_reduce_checks import least_time, loads, sums
from kernbench.validate.all_reduce_runs import (
    ITEM_BYTES,
    AllReduce,
    Outcome,
    Queues,
    on_a_grid,
    on_direct_links,
    outcome_of,
    unhindered,
    with_few_pes,
    with_scratch,
)
from kernbench.validate.all_reduce_times import THEORIES
from kernbench.validate.all_reduce_traffic import grid_of
from kernbench.validate.check import Check
from kernbench.validate.kernel_costs import KernelCosts
from kernbench.validate.variant import Variant

SIPS = (2, 3, 4, 8)
PART_BYTES = 1 << 14
"""Of each rank in a large all-reduce, or as many whole rounds of HBM channels as hold that."""
COPIES = 24
"""Messages that any of the kernels has in its scratch at most."""


def algorithm(file: Variant, seed: int, name: str) -> list[Check]:
    """All checks of one of them."""
    file = unhindered(file)
    return [*_small(file, seed, name), *_large(file, name)]


def _small(file: Variant, seed: int, name: str) -> Iterator[Check]:
    """An element for the part of each rank: messages are so short that they meet nowhere."""
    theory, queues = THEORIES[name], Queues()
    for sips in SIPS:
        system = _system(file, name, sips)
        case = AllReduce(name, _pes(system, name), sips, queues, seed)
        outcome, check_id = outcome_of(system, case), f"i.{name}.{{}}.{sips}".format
        says = _said(system, case, outcome)
        if sips in theory.exact_for:
            expected_ps = theory.time_ps(
                KernelCosts(Accesses(system), queues.packet_bytes), sips, sips * ITEM_BYTES
            )
            yield Check(
                check_id("time"), says, theory.formula, expected_ps, outcome.span_ps, 0, "ps"
            )
        yield loads(system, case, outcome, check_id("bytes"), says)
        yield sums(outcome, check_id("sums"), says)


def _large(file: Variant, name: str) -> Iterator[Check]:
    """One message, in one slot and one packet."""
    theory = THEORIES[name]
    round_bytes = file["hbm.burst_bytes"] * file["hbm.num_pcs"]
    for sips, tolerance in theory.large_for.items():
        nbytes = sips * round_bytes * ceil(PART_BYTES / round_bytes)
        queues = Queues(slots=sips, slot_bytes=nbytes, packet_bytes=nbytes)
        system = with_scratch(
            _system(file, name, sips).with_values({"packet_bytes": nbytes}), COPIES * nbytes
        )
        case = AllReduce(name, _pes(system, name), nbytes // ITEM_BYTES, queues)
        outcome = outcome_of(system, case)
        says = _said(system, case, outcome)
        expected_ps = theory.time_ps(KernelCosts(Accesses(system), nbytes), sips, nbytes)
        yield Check(
            f"i.{name}.large.{sips}",
            says,
            theory.formula,
            expected_ps,
            outcome.span_ps,
            tolerance,
            "ps",
        )
        yield least_time(system, case, outcome, f"i.{name}.least.{sips}", says)


def _system(file: Variant, name: str, sips: int) -> Variant:
    """Neighbours of the algorithm are neighbours of the system, as far as that is a ring or a grid."""
    if name == "mesh":
        return on_a_grid(file, *grid_of(sips))
    file = on_direct_links(file, sips)
    # Two cubes, the IO chiplet on a side where each has a port of its own.
    two_cubes = {"sip.cube_mesh": {"w": 2, "h": 1}, "sip.io_chiplet.edge": "S"}
    return with_few_pes(file.with_values(two_cubes)) if name == "hierarchical" else file


def _pes(system: Variant, name: str) -> int:
    """Of a cube."""
    return system.pes_per_cube if name == "hierarchical" else 1


def _said(system: Variant, case: AllReduce, outcome: Outcome) -> str:
    place = f"{system['system.sips.count']} x {system.cubes} x {case.pes} PEs"
    return outcome.said(f"{case.algorithm} on {place}, {case.elements} elements each")
