"""Each all-reduce other than the ring, small and large: time, bytes on links, sums."""

from collections.abc import Iterator
from math import ceil

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.collectives.all_reduce_checks import least_time, loads, sums
from kernbench.oracle.checks.collectives.all_reduce_runs import (
    AllReduce,
    AllReduceOutcome,
    AllReduceQueue,
    closed_form_machine,
    on_a_grid,
    on_direct_links,
    outcome_of,
    with_few_pes,
    with_scratch,
)
from kernbench.oracle.theory.collectives.all_reduce_times import ALL_REDUCE_FORMS
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES, KernelCosts
from kernbench.oracle.theory.paths.sip_grid import grid_of
from kernbench.oracle.theory.topology_file import TopologyFile

SIPS = (2, 3, 4, 8)
SLOTS = 16
"""Slots of a ring in the shipped `ccl.yaml`: no message is copied out to make room for another."""
ON_FILE, FILE_ELEMENTS = ("ring", "intercube"), 512
"""The all-reduces on every cube of the file, and the elements of a cube."""
PART_BYTES = 1 << 14
"""Bytes per rank in a large all-reduce, rounded up to whole rounds of the HBM channels."""
COPIES = 24
"""Most messages that a kernel holds in its scratch memory at once."""


def algorithm(file: TopologyFile, seed: int, name: str) -> list[Check]:
    """All checks of one algorithm."""
    file = closed_form_machine(file)
    return [*_small(file, seed, name), *_large(file, name)]


def _small(file: TopologyFile, seed: int, name: str) -> Iterator[Check]:
    """One element per rank: messages so short that no two of them compete for a link."""
    form, queue = ALL_REDUCE_FORMS[name], AllReduceQueue(slots=SLOTS)
    for sips in SIPS:
        system = _system(file, name, sips)
        case = AllReduce(name, _pes(system, name), sips, queue, seed)
        outcome, check_id = outcome_of(system, case), f"i.{name}.{{}}.{sips}".format
        text = _described(system, case, outcome)
        if sips in form.exact_for:
            costs = KernelCosts(system, queue.packet_bytes)
            yield Check(
                id=check_id("time"),
                text=text,
                formula=form.formula,
                expected=form.time_ps(costs, sips, sips * ITEM_BYTES),
                measured=outcome.span_ps,
                unit="ps",
            )
        yield loads(system, case, outcome, check_id("bytes"), text)
        yield sums(outcome, check_id("sums"), text)


def _large(file: TopologyFile, name: str) -> Iterator[Check]:
    """One message, in one slot and one packet."""
    form = ALL_REDUCE_FORMS[name]
    round_bytes = file["hbm.burst_bytes"] * file["hbm.num_pcs"]
    for sips, tolerance in form.large_for.items():
        nbytes = sips * round_bytes * ceil(PART_BYTES / round_bytes)
        queue = AllReduceQueue(slots=sips, slot_bytes=nbytes, packet_bytes=nbytes)
        system = _system(file, name, sips).with_values({"packet_bytes": nbytes})
        system = with_scratch(system, COPIES * nbytes)
        case = AllReduce(name, _pes(system, name), nbytes // ITEM_BYTES, queue)
        outcome = outcome_of(system, case)
        text = _described(system, case, outcome)
        yield Check(
            id=f"i.{name}.large.{sips}",
            text=text,
            formula=form.formula,
            expected=form.time_ps(KernelCosts(system, nbytes), sips, nbytes),
            measured=outcome.span_ps,
            tolerance=tolerance,
            unit="ps",
        )
        yield least_time(system, case, outcome, f"i.{name}.least.{sips}", text)


def _system(file: TopologyFile, name: str, sips: int) -> TopologyFile:
    """The SIPs of a run: a grid for `mesh`, otherwise a ring."""
    if name == "mesh":
        return on_a_grid(file, *grid_of(sips))
    file = on_direct_links(file, sips)
    if name != "hierarchical":
        return file
    # Two cubes with the IO chiplet on a side where both have a port, so that the exchange between
    # SIPs passes no other cube.
    two_cubes = {"sip.cube_mesh": {"w": 2, "h": 1}, "sip.io_chiplet.edge": "S"}
    return with_few_pes(file.with_values(two_cubes))


def _pes(system: TopologyFile, name: str) -> int:
    """PEs per cube that take part."""
    return system.pes_per_cube if name == "hierarchical" else 1


def _described(system: TopologyFile, case: AllReduce, outcome: AllReduceOutcome) -> str:
    ranks = f"{system['system.sips.count']} x {system.cubes} x {case.pes} PEs"
    return outcome.described(f"{case.algorithm} on {ranks}, {case.elements} elements each")


def sums_on_file(file: TopologyFile, seed: int) -> list[Check]:
    """All-reduces on PE 0 of every cube of the file."""
    return [_sums_on_file(file, algorithm, seed) for algorithm in ON_FILE]


def _sums_on_file(file: TopologyFile, algorithm: str, seed: int) -> Check:
    outcome = outcome_of(file, AllReduce(algorithm, 1, FILE_ELEMENTS, AllReduceQueue(), seed))
    elements = file["system.sips.count"] * file.cubes * FILE_ELEMENTS
    text = f"{algorithm} all-reduce of int32, {elements:,} elements: wrong ones"
    return Check(
        id=f"i.sums.{algorithm}",
        text=outcome.described(text),
        formula="the sum modulo 2^32, bit by bit",
        expected=0,
        measured=outcome.wrong,
        unit="elements",
    )
