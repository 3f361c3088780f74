"""All-reduces of 1 MiB whose messages overlap, `ring` and `halving_doubling`: alpha-beta forms."""

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
from kernbench.oracle.theory.collectives.ring_all_reduce import RingAllReduceTimes
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES
from kernbench.oracle.theory.topology_file import TopologyFile

SIPS = (2, 3, 4, 8)
NBYTES = 1 << 20


def rings(file: TopologyFile) -> list[Check]:
    """All checks of the ring, by number of SIPs."""
    file = closed_form_machine(file)
    return [check for sips in SIPS for check in (*_one_pe(file, sips), _all_pes(file, sips))]


def _one_pe(file: TopologyFile, sips: int) -> list[Check]:
    """One PE per SIP: it has to load, add, send and store at the rate of the link."""
    file, theory = on_direct_links(file, sips), RingAllReduceTimes(file, PIPELINE_QUEUE)
    outcome = outcome_of(file, AllReduce("ring", 1, NBYTES // ITEM_BYTES, PIPELINE_QUEUE))
    text = outcome.described(f"ring of {sips} SIPs, one PE each, {NBYTES >> 20} MiB")
    return [
        Check(
            id=f"i.ring.time.{sips}",
            text=f"{text}: time / formula",
            formula=f"T <= {PIPELINE_RATIO} (2(p-1) alpha + max(2(p-1)/p n/B, 2n/HBM))",
            expected=PIPELINE_RATIO,
            measured=outcome.span_ps / theory.alpha_beta_ps(sips, NBYTES, pes=1),
            unit="",
            relation=Relation.AT_MOST,
        ),
        Check(
            id=f"i.ring.least.{sips}",
            text=f"{text}: lower bound of the time",
            formula="2(p-1)/p n/B <= T",
            expected=outcome.span_ps,
            measured=theory.link_ps(sips, NBYTES),
            unit="ps",
            relation=Relation.AT_MOST,
        ),
    ]


def _all_pes(file: TopologyFile, sips: int) -> Check:
    """One ring per PE of a cube, all over the same links."""
    file, theory = on_direct_links(file, sips), RingAllReduceTimes(file, PIPELINE_QUEUE)
    pes = file.pes_per_cube
    outcome = outcome_of(file, AllReduce("ring", pes, NBYTES // pes // ITEM_BYTES, PIPELINE_QUEUE))
    text = f"ring of {sips} SIPs, {pes} PEs each, {NBYTES >> 20} MiB: time / formula"
    return Check(
        id=f"i.ring.ratio.{sips}",
        text=outcome.described(text),
        formula=f"T <= {PIPELINE_RATIO} (2(p-1) alpha + max(2(p-1)/p n/B, 2n/HBM))",
        expected=PIPELINE_RATIO,
        measured=outcome.span_ps / theory.alpha_beta_ps(sips, NBYTES, pes=pes),
        unit="",
        relation=Relation.AT_MOST,
    )


def overlapped_blocks(file: TopologyFile) -> list[Check]:
    """`halving_doubling` on one PE per SIP, by number of SIPs."""
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
