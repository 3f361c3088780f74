"""Time of all-reduces whose blocks overlap against their alpha-beta forms, one PE a SIP."""

from kernbench.oracle.checks.check import Check, Relation
from kernbench.oracle.checks.collectives.all_reduce_runs import (
    PIPELINE_QUEUE,
    PIPELINE_RATIO,
    AllReduce,
    closed_form_machine,
    on_direct_links,
    outcome_of,
)
from kernbench.oracle.theory.collectives.overlapped_blocks import HalvingDoublingForm
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES
from kernbench.oracle.theory.topology_file import TopologyFile

SIPS = (2, 3, 4, 8)
NBYTES = 1 << 20


def overlapped_blocks(file: TopologyFile) -> list[Check]:
    """A check for each number of SIPs."""
    file = closed_form_machine(file)
    return [_halving_doubling(on_direct_links(file, sips), sips) for sips in SIPS]


def _halving_doubling(file: TopologyFile, sips: int) -> Check:
    form = HalvingDoublingForm(file, PIPELINE_QUEUE.packet_bytes)
    outcome = outcome_of(
        file, AllReduce("halving_doubling", 1, NBYTES // ITEM_BYTES, PIPELINE_QUEUE)
    )
    text = f"halving_doubling on {sips} SIPs, one PE each, {NBYTES >> 20} MiB: time / formula"
    return Check(
        id=f"i.blocks.halving_doubling.{sips}",
        text=outcome.described(text),
        formula=f"T <= {PIPELINE_RATIO} ({form.formula})",
        expected=PIPELINE_RATIO,
        measured=outcome.span_ps / form.time_ps(sips, NBYTES),
        unit="",
        relation=Relation.AT_MOST,
    )
