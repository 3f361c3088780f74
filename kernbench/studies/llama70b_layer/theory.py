"""Least times of the parts of a layer, from the topology file alone.

A product reads its weight once: bytes / bandwidth of all HBM slices, or multiply-adds at the peak
of all GEMM engines. Attention reads the keys and values of its heads. An all-reduce has the bounds
of `kernbench perf`.
"""

from math import ceil
from typing import NamedTuple

from kernbench.benches.collective_perf.bound import CollectiveBounds
from kernbench.benches.collective_perf.collective import COLLECTIVES, PerfCase
from kernbench.oracle.theory.bandwidths import gemm_bound_ps, own_read_gbs
from kernbench.oracle.theory.roofline import bytes_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.llama70b_layer.shape import ITEM_BYTES, LayerShape
from runtime.model.topology import parse_topology


class PartBound(NamedTuple):
    """A least time, and what it counts."""

    time_ps: int
    limit: str


def part_bounds(topology: str, shape: LayerShape, ranks: int) -> tuple[PartBound, ...]:
    """The bounds of the parts of a layer, in the order of `PARTS`, on `ranks` SIPs."""
    file, own = TopologyFile.of(topology), shape.of_rank(ranks)
    queries, tokens = own.heads * own.depth, own.tokens

    def product(depth: int, columns: int) -> PartBound:
        return _roofline(file, tokens * depth * columns, depth * columns)

    reduced = _all_reduce(topology, tokens * own.hidden, ranks)
    # A causal prefill multiplies with half of the keys and, at the diagonal, half a token more.
    scores = own.context if own.is_decode else tokens * (tokens + 1) // 2
    cached = 2 * own.kv_heads * own.context * own.depth
    return (
        product(own.hidden, own.qkv),
        _roofline(file, 2 * scores * queries, cached),
        product(queries, own.hidden),
        reduced,
        product(own.hidden, 2 * own.inner),
        product(own.inner, own.hidden),
        reduced,
    )


def _roofline(file: TopologyFile, macs: int, elements: int) -> PartBound:
    pes = file.cubes * file.pes_per_cube
    memory_ps = bytes_ps(elements * ITEM_BYTES, own_read_gbs(file) * pes)
    gemm_ps = gemm_bound_ps(file, macs, pes)
    return PartBound(ceil(max(memory_ps, gemm_ps)), "memory" if memory_ps > gemm_ps else "GEMM")


def _all_reduce(topology: str, elements: int, ranks: int) -> PartBound:
    """Kernels alone: the launch may be hidden behind the part before."""
    if ranks == 1:
        return PartBound(0, "links")
    parsed = parse_topology(topology, "topology", ranks)
    case = PerfCase(COLLECTIVES["all_reduce"], ranks, elements, "half", "sum", -1)
    bounds = CollectiveBounds(parsed, range(parsed.cubes), parsed.pes_per_cube).of(case)
    return PartBound(max(bound.time_ps - bound.launch_ps for bound in bounds), "links")
