"""The time of a ring all-reduce: on one PE a SIP by the closed form of the kernel, on all PEs of a cube by alpha and beta."""

from kernbench.validate.accesses import Accesses
from kernbench.validate.all_reduce_runs import (
    ITEM_BYTES,
    AllReduce,
    Queues,
    on_direct_links,
    outcome_of,
    unhindered,
    with_scratch,
)
from kernbench.validate.check import Bound, Check
from kernbench.validate.collective_theory import PeToNextSip
from kernbench.validate.variant import Variant

SIPS = (2, 3, 4)
BLOCKS = 2
"""Of a ring on one PE: the second one shows that blocks follow each other."""
SATURATING_BLOCKS = 3
TOLERANCE = 0.01


def rings(file: Variant) -> list[Check]:
    """All checks of rings, by the number of SIPs."""
    file = unhindered(file)
    return [check for sips in SIPS for check in (*_alone(file, sips), _together(file, sips))]


def _alone(file: Variant, sips: int) -> list[Check]:
    """One PE a SIP, to the picosecond, and how far alpha and beta alone are below that."""
    file = on_direct_links(file, sips)
    accesses, slot_bytes = Accesses(file), file["packet_bytes"]
    queues = Queues(
        slots=PeToNextSip(accesses, Queues(slot_bytes=slot_bytes)).slots_for_a_stream,
        slot_bytes=slot_bytes,
    )
    theory, nbytes = PeToNextSip(accesses, queues), BLOCKS * sips * queues.ring_bytes
    outcome = outcome_of(
        _with_room(file, sips, queues), AllReduce("ring", 1, nbytes // ITEM_BYTES, queues)
    )
    says = outcome.said(f"ring of {sips} SIPs, one PE each, {nbytes >> 10} KiB")
    expected_ps = BLOCKS * theory.block_ps(sips)
    formula = "blocks (load + 2(p-1) step + (p-1) add + p store)"
    least = "2(p-1) alpha + 2(p-1)/p n/B <= T"
    least_ps = theory.alpha_beta_ps(sips, nbytes)
    return [
        Check(f"i.ring.time.{sips}", says, formula, expected_ps, outcome.span_ps, 0, "ps"),
        Check(
            f"i.ring.least.{sips}",
            f"{says}: least time",
            least,
            outcome.span_ps,
            least_ps,
            0,
            "ps",
            Bound.AT_MOST,
        ),
    ]


def _together(file: Variant, sips: int) -> Check:
    """As many rings as a cube has PEs: while one PE of a SIP computes, the link to the next SIP is busy for the others."""
    # One slot and one packet a message: the time is that of the bytes on the link, whatever they are cut into.
    message = 16 * file["packet_bytes"]
    file = on_direct_links(file, sips).with_values({"packet_bytes": message})
    queues = Queues(slots=1, slot_bytes=message, packet_bytes=message)
    theory, pes = PeToNextSip(Accesses(file), queues), file.pes_per_cube
    nbytes = pes * SATURATING_BLOCKS * sips * message
    outcome = outcome_of(
        _with_room(file, sips, queues), AllReduce("ring", pes, nbytes // pes // ITEM_BYTES, queues)
    )
    says = outcome.said(
        f"ring of {sips} SIPs, {pes} PEs each, {nbytes / 2**20:g} MiB: time over the formula"
    )
    ratio = outcome.span_ps / (theory.alpha_beta_ps(sips, nbytes) + theory.ends_ps(sips))
    return Check(
        f"i.ring.ratio.{sips}", says, "2(p-1) alpha + 2(p-1)/p n/B + gamma", 1, ratio, TOLERANCE, ""
    )


def _with_room(file: Variant, sips: int, queues: Queues) -> Variant:
    """Scratch for all copies of a block, so that a message is as large as a ring."""
    return with_scratch(file, 4 * sips * queues.ring_bytes)
