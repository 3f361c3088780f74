"""Bounds of ring attention, from the topology file alone.

The rank with the most scores computes them with all its PEs all the time. Its link carries the keys
and values of the other ranks, each step with a message of alpha + n/B. Steps overlap, so neither
bound contains the other.
"""

from fractions import Fraction

from kernbench.benches.attention.context_parallel import SequenceParts
from kernbench.oracle.theory.engines.attention import ITEM_BYTES, score_times
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.ring_attention.rows import RingBounds


def ring_bounds(file: TopologyFile, parts: SequenceParts, heads: int, depth: int) -> RingBounds:
    """The bounds with one head on each of `heads` PEs of cube 0 of every SIP."""
    scores = max(map(parts.scores, range(parts.ranks)))
    times = score_times(file, scores, depth)
    # alpha contains no packet, so their size is of no importance.
    costs = KernelCosts(file, packet_bytes=1)
    link = costs.alpha_beta(FloorPlan(file).between_pes((0, 0), (0, 0), 1))
    nbytes = 2 * heads * parts.rank_tokens * depth * ITEM_BYTES
    link_ps: Fraction = (parts.ranks - 1) * link.message_ps(nbytes)
    return RingBounds(
        gemm_ps=float(times.gemm_ps), vector_ps=float(times.vector_ps), link_ps=float(link_ps)
    )
