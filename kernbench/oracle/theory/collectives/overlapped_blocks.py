"""Closed forms of all-reduces whose blocks overlap, on a ring of SIPs, in picoseconds.

A collective that overlaps pays the latency of each step once, and the bytes of the busiest
resource: the form is the critical path of a message without bytes, and the larger of the times of
all resources. The steps are those of R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of
Collective Communication Operations in MPICH", 2005.
"""

from fractions import Fraction
from itertools import pairwise

from kernbench.oracle.theory.bandwidths import slice_gbs
from kernbench.oracle.theory.collectives.all_reduce_times import distances_by_bit
from kernbench.oracle.theory.collectives.rank_orders import sips_by_number
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.paths.routes import UCIE_GBS
from kernbench.oracle.theory.paths.sip_grid import SipGrid
from kernbench.oracle.theory.roofline import bytes_ps
from kernbench.oracle.theory.topology_file import TopologyFile


class HalvingDoublingForm:
    """The form of one topology file, for queues with packets of `packet_bytes`.

    T = 2 (sum of alpha_b + alpha_fold) + max(S n/B, L n/B, 2n/M)

    There are P = 2^floor(log2 p) corners. alpha_b is a message without bytes to the partner over
    bit b, B the bandwidth of a link between SIPs and of the port of a cube, M that of the HBM slice
    of the PE. A corner sends S = 2(P-1)/P of its elements, or one more of each if a rank folds onto
    it. L n is what passes the busiest link of the ring.
    """

    formula = "2 (sum of alpha_b + alpha_fold) + max(S n/B, L n/B, 2n/M)"

    def __init__(self, file: TopologyFile, packet_bytes: int) -> None:
        self._costs, self._link_gbs = KernelCosts(file, packet_bytes), file.number(UCIE_GBS)
        self._slice_gbs = slice_gbs(file)

    def time_ps(self, sips: int, nbytes: int, pes: int = 1) -> float:
        """The time of `nbytes` on a SIP, divided over `pes` PEs of one cube."""
        memory_ps = bytes_ps(2 * nbytes, pes * self._slice_gbs)
        link_ps = bytes_ps(self.busiest(sips) * nbytes, self._link_gbs)
        return float(self.latency_ps(sips) + max(link_ps, memory_ps))

    def latency_ps(self, sips: int) -> int:
        """All steps without bytes: the corner whose partners are farthest."""
        # Partners over a high bit are several links apart on a ring: the corner with the largest
        # sum of latencies is the critical path.
        steps_ps = max(map(self._steps_ps, distances_by_bit("halving_doubling", sips)))
        ring, order = SipGrid(sips), sips_by_number("halving_doubling", SipGrid(sips))
        corners = 1 << sips.bit_length() - 1
        folds = [ring.distance(order[each], order[each - corners]) for each in range(corners, sips)]
        return 2 * (steps_ps + max(map(self._alpha_ps, folds), default=0))

    def busiest(self, sips: int) -> Fraction:
        """Max(S, L): what the busiest port or link carries, in units of n."""
        ring, order = SipGrid(sips), sips_by_number("halving_doubling", SipGrid(sips))
        corners = 1 << sips.bit_length() - 1
        loads = dict[tuple[str, int, int], Fraction]()

        def add(rank: int, other: int, share: Fraction) -> None:
            path = ring.path(order[rank], order[other])
            ends = ("out of", path[0], path[0]), ("into", path[-1], path[-1])
            for each in (*ends, *(("link", *link) for link in pairwise(path))):
                loads[each] = loads.get(each, Fraction(0)) + share

        for rank in range(corners):
            for bit in range(corners.bit_length() - 1):
                # Once in the reduce-scatter, once in the all-gather.
                add(rank, rank ^ 1 << bit, Fraction(2, 2 << bit))
        for rank in range(corners, sips):
            add(rank, rank - corners, Fraction(1))
            add(rank - corners, rank, Fraction(1))
        return max(loads.values())

    def _steps_ps(self, distances: list[int]) -> int:
        return sum(map(self._alpha_ps, distances))

    def _alpha_ps(self, distance: int) -> int:
        return self._costs.alpha_ps(self._costs.to_sip(distance))
