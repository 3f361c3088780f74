"""Queue pairs: their rate with receive rings of 1 to 16 slots, and the round trip of a credit."""

from itertools import pairwise
from math import nan

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.collectives.all_reduce_runs import AllReduceQueue
from kernbench.oracle.checks.transfers.accesses import (
    CREDIT_BYTES,
    SLOT_BYTES,
    Accesses,
    CubeOfSystem,
    joined,
)
from kernbench.oracle.theory.collectives.ring_all_reduce import RingAllReduceTimes
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.errors import InvariantError, IpcqDeadlock

MOST_SLOTS = 16
RATE_SLOT_BYTES = 2048
"""So small that few slots cover less than a round trip, and many slots cover more."""
FILLINGS = 4
TOLERANCE = 0.01


def rates(file: TopologyFile) -> list[Check]:
    """One check per number of slots."""
    file = file.with_values({"control_bytes": CREDIT_BYTES, "sip.cube_mesh": {"w": 1, "h": 1}})
    return [
        _rate(file, AllReduceQueue(slots=slots, slot_bytes=RATE_SLOT_BYTES))
        for slots in range(1, MOST_SLOTS + 1)
    ]


def _rate(file: TopologyFile, queue: AllReduceQueue) -> Check:
    size = f"{RATE_SLOT_BYTES >> 10} KiB"
    return Check(
        id=f"i.rate.{queue.slots}",
        text=f"slots of {size} to the next SIP through a ring of {queue.slots}",
        formula="min(B, C s / RTT)",
        expected=RingAllReduceTimes(file, queue).rate_gbs(),
        measured=_measured_gbs(Accesses(file), queue),
        tolerance=TOLERANCE,
        unit="GB/s",
    )


def _measured_gbs(accesses: Accesses, queue: AllReduceQueue) -> float:
    """The steady rate: all fillings of the ring but the first; nan if the run does not end."""
    # The first filling of the ring waits for no credit, so it is faster than the steady state.
    slots = FILLINGS * queue.slots + 1
    directions, nbytes = ("global_E", "global_W"), slots * queue.slot_bytes
    try:
        arrivals = accesses.arrivals((0, 0), (1, 0), directions, nbytes, queue.ccl)[:slots]
    except (InvariantError, IpcqDeadlock):
        return nan
    span_ps = arrivals[-1].end_ps - arrivals[queue.slots].end_ps
    return (FILLINGS - 1) * queue.ring_bytes * 1000 / span_ps


SLOTS = 6
PACKET_BYTES = 256


def credit_rounds(file: TopologyFile) -> list[Check]:
    """A ring of one slot: a slot arrives one round trip of its credit after the slot before it."""
    values = {
        "packet_bytes": SLOT_BYTES,
        "control_bytes": CREDIT_BYTES,
        "sip.cube_mesh": {"w": 2, "h": 1},
    }
    file = file.with_values(values)
    accesses, costs = Accesses(file), KernelCosts(file, PACKET_BYTES)
    source, target = (0, 0), (0, 1)
    rounds_ps = _rounds_ps(accesses, source, target)
    slot_ps = accesses.slot_ps(source, target, SLOT_BYTES, "tcm", PACKET_BYTES)
    credit_ps = accesses.times.announcement_ps(costs.to_cube(target[1], source[1]))
    text = f"{SLOTS} slots of {SLOT_BYTES >> 10} KiB to the next cube through a ring of one"
    return [
        Check(
            id=f"i.credit.{name}",
            text=f"{text}: {which} round trip",
            formula="slot + announcement + copy + credit",
            expected=slot_ps + costs.copy_ps(SLOT_BYTES) + credit_ps,
            measured=measured_ps,
            unit="ps",
        )
        for name, which, measured_ps in (
            ("each", "shortest", min(rounds_ps)),
            ("all", "longest", max(rounds_ps)),
        )
    ]


def _rounds_ps(accesses: Accesses, source: CubeOfSystem, target: CubeOfSystem) -> set[float]:
    ccl = joined("tcm", PACKET_BYTES, slots=1)
    try:
        arrivals = accesses.arrivals(source, target, ("E", "W"), SLOTS * SLOT_BYTES, ccl)[:SLOTS]
    except (InvariantError, IpcqDeadlock):
        return {nan}
    return {after.end_ps - before.end_ps for before, after in pairwise(arrivals)}
