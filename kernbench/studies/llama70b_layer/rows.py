"""The rows of the study, the bounds of their parts, and the content of `llama70b_layer.json`.

Bounds are from the topology file alone. A product reads its weight once: bytes / bandwidth of all
HBM slices, or multiply-adds at the peak of all GEMM engines. Attention reads the keys and values of
its heads. An all-reduce has the bounds of `kernbench perf`.
"""

from math import ceil
from typing import NamedTuple

from msgspec import Struct

from kernbench.benches.collective_perf.bound import CollectiveBounds
from kernbench.benches.collective_perf.collective import COLLECTIVES, PerfCase
from kernbench.benches.decoder_layer.shape import ITEM_BYTES, LAYERS, LayerShape
from kernbench.oracle.theory.bandwidths import gemm_bound_ps, own_read_gbs
from kernbench.oracle.theory.roofline import bytes_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.study_results import StudyResults, below_bound, sip_count, wrong_by
from runtime.model.topology import parse_topology

TOLERANCE = 2e-2
"""Largest difference from float64, as a share of the root mean square of the result. Weights and
activations are rounded to float16, 2^-11 each, in about ten steps from the input to the result.
"""
PS_PER_S = 10**12


class LayerPart(Struct, frozen=True, forbid_unknown_fields=True):
    """One part of a layer: its time, from the end of the part before it, and its bound.

    `limit` names what the bound counts: `memory`, `GEMM` or `links`.
    """

    name: str
    time_ps: int
    bound_ps: int
    limit: str

    @property
    def is_communication(self) -> bool:
        """Whether ranks exchange data, and compute nothing meanwhile."""
        return self.name.startswith("all_reduce")


class LayerRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One layer on `sips` SIPs.

    `error` is the largest difference from float64 as a share of the root mean square of the result,
    None in a run without data.
    """

    sips: int
    tokens: int
    context: int
    hidden: int
    parts: tuple[LayerPart, ...]
    error: float | None

    @property
    def is_decode(self) -> bool:
        """Whether there is one new token behind a cache."""
        return self.tokens == 1

    @property
    def label(self) -> str:
        """Phase, width and SIPs."""
        phase = "decode" if self.is_decode else "prefill"
        return f"{phase} of {self.hidden} columns on {sip_count(self.sips)}"

    @property
    def time_ps(self) -> int:
        """The time of the layer: its parts follow one another."""
        return sum(part.time_ps for part in self.parts)

    @property
    def bound_ps(self) -> int:
        """The sum of the bounds of all parts."""
        return sum(part.bound_ps for part in self.parts)

    @property
    def exposed_ps(self) -> int:
        """The time in which a rank only communicates."""
        return sum(part.time_ps for part in self.parts if part.is_communication)

    @property
    def tokens_per_s(self) -> float:
        """Tokens / (80 layers x time of a layer); embedding and sampling are not counted."""
        return self.tokens * PS_PER_S / (LAYERS * self.time_ps)

    @property
    def faults(self) -> list[str]:
        """A wrong result, a part below its bound."""
        faults = [*wrong_by(self.error, TOLERANCE)]
        for part in self.parts:
            faults += below_bound(part.time_ps, part.bound_ps, part.name)
        return faults


class LayerResults(StudyResults[LayerRow], frozen=True, forbid_unknown_fields=True):
    """The file."""

    @property
    def headline(self) -> tuple[LayerRow, ...]:
        """The rows at full size."""
        return tuple(row for row in self.rows if row.error is None)


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
