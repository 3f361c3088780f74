"""Closed form of the all-reduce over both dimensions of a grid of SIPs at once.

W x H ranks have n bytes each, and half of each rank's elements pass the row first, the other half
the column. The dimensions are those of H. Mikami et al., Massively Distributed SGD:
ImageNet/ResNet-50 Training in a Flash, 2018.
"""

from fractions import Fraction

from kernbench.oracle.theory.alpha_beta import RingQueue
from kernbench.oracle.theory.bandwidths import slice_gbs
from kernbench.oracle.theory.collectives.ring_all_reduce import RingAllReduceTimes
from kernbench.oracle.theory.roofline import bytes_ps
from kernbench.oracle.theory.topology_file import TopologyFile


def busiest_link_bytes(columns: int, rows: int, nbytes: int, *, wraps: bool) -> Fraction:
    """The bytes of the rings on the busiest link in one direction, without credits.

    Of the half that passes a dimension of k ranks first, each link of it carries 2(k-1)/k, of the
    other half 2(k-1)/k of the part that the other dimension leaves. Where a dimension wraps and has
    more than two ranks, the two directions of its links share these bytes. Without wrap, the
    closing link of each ring occupies the opposite direction of all others, so both carry all.
    """
    # The other half comes from the other dimension, whose reduce-scatter leaves 1/`other` of it.
    sides = ((columns, rows), (rows, columns))
    carried: list[Fraction] = []
    for size, other in sides:
        round_ring = Fraction(2 * (size - 1), size) * Fraction(nbytes, 2) * (1 + Fraction(1, other))
        carried.append(round_ring / (2 if wraps and size > 2 else 1))
    return max(carried)


class TorusAllReduceTimes:
    """The closed form of one topology file and one kind of queue."""

    def __init__(self, file: TopologyFile, queue: RingQueue) -> None:
        self._link, self._slice_gbs = RingAllReduceTimes(file, queue).link, slice_gbs(file)

    def link_ps(self, columns: int, rows: int, nbytes: int, *, wraps: bool) -> float:
        """The bytes on the busiest link, over its bandwidth."""
        return float(self._link.bytes_ps(busiest_link_bytes(columns, rows, nbytes, wraps=wraps)))

    def alpha_beta_ps(
        self, columns: int, rows: int, nbytes: int, *, pes: int, wraps: bool
    ) -> float:
        """(2(W-1) + 2(H-1)) alpha + max(L/B, (2 + 2/W + 2/H) n/M), with n bytes per SIP on `pes`
        PEs with a slice each, and L bytes on the busiest link.

        Each of the three passes reads its elements from memory and writes its results. With w =
        2(W-1)/W and h = 2(H-1)/H, the busiest link of an open grid carries n/2 max(w(1 + 1/H), h(1
        + 1/W)) bytes, that of a torus with sides above two half of it.
        """
        steps_ps = 2 * (columns + rows - 2) * self._link.alpha_ps
        memory_bytes = nbytes * (2 + Fraction(2, columns) + Fraction(2, rows))
        memory_ps = float(bytes_ps(memory_bytes, pes * self._slice_gbs))
        link_ps = self.link_ps(columns, rows, nbytes, wraps=wraps)
        return float(steps_ps) + max(link_ps, memory_ps)
