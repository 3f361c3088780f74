"""The rate of a queue pair to the next SIP, with rings of 1 to 16 slots."""

from math import nan

from kernbench.validate.accesses import Accesses
from kernbench.validate.all_reduce_runs import CREDIT_BYTES, Queues
from kernbench.validate.check import Check
from kernbench.validate.collective_theory import PeToNextSip
from kernbench.validate.variant import Variant
from runtime.core.errors import InvariantError, IpcqDeadlock

MOST_SLOTS = 16
SLOT_BYTES = 2048
"""Small enough that a ring of a few slots is too short for the way, and one of many is not."""
FILLINGS = 4
TOLERANCE = 0.01
FORMULA = "min(B, C s / RTT)"


def rates(file: Variant) -> list[Check]:
    """A check for each number of slots."""
    file = file.with_values({"control_bytes": CREDIT_BYTES, "sip.cube_mesh": {"w": 1, "h": 1}})
    accesses = Accesses(file)
    return [
        _rate(accesses, Queues(slots=slots, slot_bytes=SLOT_BYTES))
        for slots in range(1, MOST_SLOTS + 1)
    ]


def _rate(accesses: Accesses, queues: Queues) -> Check:
    says = f"slots of {SLOT_BYTES >> 10} KiB to the next SIP through a ring of {queues.slots}"
    expected_gbs = PeToNextSip(accesses, queues).rate_gbs()
    return Check(
        f"i.rate.{queues.slots}",
        says,
        FORMULA,
        expected_gbs,
        _measured_gbs(accesses, queues),
        TOLERANCE,
        "GB/s",
    )


def _measured_gbs(accesses: Accesses, queues: Queues) -> float:
    """The steady rate, that of all fillings of the ring but the first; nan if they never come."""
    slots = FILLINGS * queues.slots + 1
    try:
        arrivals = accesses.arrivals(
            (0, 0), (1, 0), ("global_E", "global_W"), slots * queues.slot_bytes, queues.ccl
        )[:slots]
    except (InvariantError, IpcqDeadlock):
        return nan
    span_ps = arrivals[-1].end_ps - arrivals[queues.slots].end_ps
    return (FILLINGS - 1) * queues.ring_bytes * 1000 / span_ps
