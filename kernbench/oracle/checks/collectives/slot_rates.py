"""Bandwidth of a queue pair to the next SIP, with receive rings of 1 to 16 slots."""

from math import nan

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.collectives.all_reduce_runs import CREDIT_BYTES, AllReduceQueue
from kernbench.oracle.checks.transfers.accesses import Accesses
from kernbench.oracle.theory.collectives.ring_all_reduce import RingAllReduceTimes
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.errors import InvariantError, IpcqDeadlock

MOST_SLOTS = 16
SLOT_BYTES = 2048
"""So small that few slots cover less than a round trip, and many slots cover more."""
FILLINGS = 4
TOLERANCE = 0.01


def rates(file: TopologyFile) -> list[Check]:
    """One check per number of slots."""
    file = file.with_values({"control_bytes": CREDIT_BYTES, "sip.cube_mesh": {"w": 1, "h": 1}})
    return [
        _rate(file, AllReduceQueue(slots=slots, slot_bytes=SLOT_BYTES))
        for slots in range(1, MOST_SLOTS + 1)
    ]


def _rate(file: TopologyFile, queue: AllReduceQueue) -> Check:
    return Check(
        id=f"i.rate.{queue.slots}",
        text=f"slots of {SLOT_BYTES >> 10} KiB to the next SIP through a ring of {queue.slots}",
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
