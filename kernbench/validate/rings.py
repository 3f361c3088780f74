"""Time of a ring all-reduce: exact with one PE per SIP, alpha-beta with all PEs of a cube."""

from kernbench.theory.kernel_costs import ITEM_BYTES
from kernbench.theory.ring_all_reduce import RingAllReduceTimes
from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.all_reduce_runs import (
    AllReduce,
    AllReduceQueue,
    closed_form_machine,
    on_direct_links,
    outcome_of,
    with_scratch,
)
from kernbench.validate.check import Check, Relation

SIPS = (2, 3, 4)
BLOCKS = 2
"""Blocks of a run with one PE: the second one shows that blocks follow each other without a gap."""
SATURATING_BLOCKS = 3
TOLERANCE = 0.01


def rings(file: TopologyFile) -> list[Check]:
    """All checks of the ring, by number of SIPs."""
    file = closed_form_machine(file)
    return [check for sips in SIPS for check in (*_one_pe(file, sips), _all_pes(file, sips))]


def _one_pe(file: TopologyFile, sips: int) -> list[Check]:
    """One PE per SIP: the exact time, and the alpha-beta time as its lower bound."""
    file, slot_bytes = on_direct_links(file, sips), file["packet_bytes"]
    slots = RingAllReduceTimes(file, AllReduceQueue(slot_bytes=slot_bytes)).slots_for_a_stream
    queue = AllReduceQueue(slots=slots, slot_bytes=slot_bytes)
    theory, nbytes = RingAllReduceTimes(file, queue), BLOCKS * sips * queue.ring_bytes
    case = AllReduce("ring", 1, nbytes // ITEM_BYTES, queue)
    outcome = outcome_of(_with_scratch(file, sips, queue), case)
    text = outcome.described(f"ring of {sips} SIPs, one PE each, {nbytes >> 10} KiB")
    return [
        Check(
            id=f"i.ring.time.{sips}",
            text=text,
            formula="blocks (load + 2(p-1) step + (p-1) add + p store)",
            expected=BLOCKS * theory.block_ps(sips),
            measured=outcome.span_ps,
            unit="ps",
        ),
        Check(
            id=f"i.ring.least.{sips}",
            text=f"{text}: lower bound of the time",
            formula="2(p-1) alpha + 2(p-1)/p n/B <= T",
            expected=outcome.span_ps,
            measured=theory.alpha_beta_ps(sips, nbytes),
            unit="ps",
            relation=Relation.AT_MOST,
        ),
    ]


def _all_pes(file: TopologyFile, sips: int) -> Check:
    """One ring per PE of a cube: while one PE computes, others keep the link between SIPs busy."""
    # One slot and one packet per message: the link is busy for the bytes, without rounding per
    # packet.
    message = 16 * file["packet_bytes"]
    file = on_direct_links(file, sips).with_values({"packet_bytes": message})
    queue = AllReduceQueue(slots=1, slot_bytes=message, packet_bytes=message)
    theory, pes = RingAllReduceTimes(file, queue), file.pes_per_cube
    nbytes = pes * SATURATING_BLOCKS * sips * message
    case = AllReduce("ring", pes, nbytes // pes // ITEM_BYTES, queue)
    outcome = outcome_of(_with_scratch(file, sips, queue), case)
    ring = f"ring of {sips} SIPs, {pes} PEs each, {nbytes / 2**20:g} MiB"
    return Check(
        id=f"i.ring.ratio.{sips}",
        text=outcome.described(f"{ring}: time / formula"),
        formula="2(p-1) alpha + 2(p-1)/p n/B + gamma",
        expected=1,
        measured=outcome.span_ps / (theory.alpha_beta_ps(sips, nbytes) + theory.ends_ps(sips)),
        tolerance=TOLERANCE,
        unit="",
    )


def _with_scratch(file: TopologyFile, sips: int, queue: AllReduceQueue) -> TopologyFile:
    """Scratch memory for all copies of a block, so that a message can be as large as the ring."""
    return with_scratch(file, 4 * sips * queue.ring_bytes)
