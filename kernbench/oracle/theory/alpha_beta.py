"""The alpha-beta model of messages: alpha + n/B, and the textbook times of collectives.

alpha is the time of a message without bytes, B the bandwidth. R. Hockney, "The communication
challenge for MPP: Intel Paragon and Meiko CS-2", Parallel Computing 20(3), 1994. The times of the
collectives are those of R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective
Communication Operations in MPICH", IJHPCA 19(1), 2005. All times are exact fractions of a
picosecond.
"""

from dataclasses import dataclass
from fractions import Fraction

from kernbench.oracle.theory.roofline import bytes_ps

Exactly = Fraction | int


@dataclass(frozen=True)
class AlphaBeta:
    """alpha in picoseconds and B in GB/s of one route between two PEs."""

    alpha_ps: Exactly
    gbs: Fraction

    def message_ps(self, nbytes: Exactly) -> Fraction:
        """Alpha + n/B: one message of `nbytes`."""
        return self.alpha_ps + self.bytes_ps(nbytes)

    def bytes_ps(self, nbytes: Exactly) -> Fraction:
        """n/B: the bytes alone."""
        return bytes_ps(nbytes, self.gbs)

    def ring_all_reduce_ps(self, ranks: int, nbytes: int) -> Fraction:
        """2(p-1) alpha + 2(p-1)/p n/B: reduce-scatter, then all-gather, in steps of n/p bytes."""
        # A rank sends one of p chunks in each of 2(p-1) steps: the least bytes of any all-reduce
        # (`all_reduce_bytes`).
        return 2 * (ranks - 1) * self.message_ps(Fraction(nbytes, ranks))


def all_reduce_bytes(ranks: int, nbytes: int) -> Fraction:
    """2(p-1)/p n: the bytes that at least one rank sends in any all-reduce of n bytes per rank.

    P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
    JPDC 69(2), 2009.
    """
    # Each element needs p - 1 messages to be added and p - 1 to be distributed: 2(p-1) n in total,
    # at least the p-th part of which one rank sends.
    return Fraction(2 * (ranks - 1) * nbytes, ranks)


@dataclass(frozen=True)
class RingQueue:
    """A receive ring: its slots, and the packets in which a slot is written.

    The largest message of a collective is a full ring.
    """

    slots: int = 4
    slot_bytes: int = 4096
    packet_bytes: int = 256
    credit_bytes: int = 16

    @property
    def ring_bytes(self) -> int:
        """Bytes of all slots."""
        return self.slots * self.slot_bytes
