"""All-reduces that combine cubes, or PEs, over a tree below a ring of SIPs: time, bytes, sums."""

from collections.abc import Iterator

from kernbench.oracle.checks.check import Check, Relation
from kernbench.oracle.checks.collectives.all_reduce_checks import sums
from kernbench.oracle.checks.collectives.all_reduce_runs import (
    PIPELINE_QUEUE,
    PIPELINE_RATIO,
    AllReduce,
    closed_form_machine,
    on_direct_links,
    outcome_of,
    with_few_pes,
)
from kernbench.oracle.theory.alpha_beta import all_reduce_bytes
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.fidelity.collectives.drawn_all_reduces import credits_home
from tests.fidelity.theory.tree_all_reduce import TreeAllReduceTimes

RUNS = {"intercube": (2, 4), "hierarchical": (2,)}
"""Numbers of SIPs by algorithm."""
MESH = {"w": 2, "h": 2}
"""The smallest mesh whose root has a child in its row and one in its column."""
NBYTES = 1 << 20
SMALL_ELEMENTS = 5 * 4096 + 7
"""More than moves as one message, in parts of unequal sizes."""
CREDITS = 0.02
"""The most that credits add to the bytes of a link: 16 bytes for each slot of up to 4096."""


def tree_pipelines(file: TopologyFile, seed: int, name: str) -> list[Check]:
    """All checks of one of `RUNS`."""
    file = closed_form_machine(file).with_values({"sip.cube_mesh": MESH})
    if name == "hierarchical":
        file = with_few_pes(file)
    return [check for sips in RUNS[name] for check in _checks(file, seed, name, sips)]


def _checks(file: TopologyFile, seed: int, name: str, sips: int) -> Iterator[Check]:
    pes = file.pes_per_cube if name == "hierarchical" else 1
    system, check_id = on_direct_links(file, sips), f"i.pipeline.{name}.{sips}.{{}}".format
    theory = TreeAllReduceTimes(system, pes, PIPELINE_QUEUE.packet_bytes)
    large = outcome_of(system, AllReduce(name, pes, NBYTES // ITEM_BYTES, PIPELINE_QUEUE))
    text = f"{name} on {sips} SIPs x {system.cubes} x {pes} PEs"
    large_text = f"{text}, {NBYTES >> 20} MiB each"
    yield Check(
        id=check_id("ratio"),
        text=large.described(f"{large_text}: time / formula"),
        formula=f"T <= {PIPELINE_RATIO} (2(p-1) alpha + path (alpha + m/B) + busiest resource)",
        expected=PIPELINE_RATIO,
        measured=large.span_ps / theory.form_ps(sips, NBYTES),
        unit="",
        relation=Relation.AT_MOST,
    )
    bound = theory.busiest(sips, NBYTES)
    yield Check(
        id=check_id("least"),
        text=f"{large_text}: lower bound of the time, by the {bound.resource}",
        formula="bytes / bandwidth of the busiest resource <= T",
        expected=large.span_ps,
        measured=float(bound.time_ps),
        unit="ps",
        relation=Relation.AT_MOST,
    )
    yield Check(
        id=check_id("bytes"),
        text=f"{large_text}: bytes on the busiest link between SIPs",
        formula="2(p-1)/p n + credits",
        expected=float(all_reduce_bytes(sips, NBYTES)),
        measured=max(large.between_sips.values(), default=0),
        tolerance=CREDITS,
        unit="B",
    )
    small = outcome_of(system, AllReduce(name, pes, SMALL_ELEMENTS, PIPELINE_QUEUE, seed))
    small_text = f"{text}, {SMALL_ELEMENTS} elements each"
    yield sums(small, check_id("sums"), small.described(small_text))
    yield credits_home(small, check_id("home"), small_text)
