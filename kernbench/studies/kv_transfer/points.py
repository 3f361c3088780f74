"""The points of the study: a transfer by sizes of both sides, order and tokens."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import NamedTuple

from kernbench.oracle.theory.paths.sip_grid import grid_of
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.kv_transfer.computation import LayerWork, layer_ps, layer_work
from kernbench.studies.kv_transfer.rows import KvSizes
from kernbench.studies.kv_transfer.sides import HeadsMove, RankOrder, Sides
from kernbench.studies.llama70b_layer.shape import ITEM_BYTES, LLAMA_70B, LayerShape
from kernbench.studies.parameter_study import TopologyText
from runtime.core.errors import UsageError

CHECKED_BYTES = 1 << 23
"""A run with at most as many bytes of K and V has data, and every element is checked."""


class KvSize(NamedTuple):
    """One row of the sweep."""

    prefill: int
    decode: int
    order: RankOrder
    tokens: int


@dataclass(frozen=True, kw_only=True)
class KvPoint:
    """The transfer of `layers` layers on a topology file, given as text.

    The new tokens of `shape` are computed; K and V of those before them are in a prefix cache.
    """

    topology: str
    prefill: int
    decode: int
    order: RankOrder
    shape: LayerShape
    layers: int

    @property
    def sips(self) -> int:
        """The SIPs of both sides."""
        return self.prefill + self.decode

    @cached_property
    def sides(self) -> Sides:
        """The SIPs of the ranks."""
        return Sides.of(self.order, self.prefill, self.decode)

    @cached_property
    def moves(self) -> tuple[HeadsMove, ...]:
        """Which heads move from where to where, the same in every layer."""
        return tuple(self.sides.moves(self.shape.kv_heads))

    @cached_property
    def work(self) -> LayerWork:
        """The work of each PE for one layer of the prefill."""
        heads = len(self.moves[0].heads)
        return layer_work(TopologyFile.of(self.topology), self.shape, self.roofline_ps, heads)

    @cached_property
    def roofline_ps(self) -> Fraction:
        """The least time of a layer of the prefill."""
        return layer_ps(TopologyFile.of(self.topology), self.shape, self.prefill)

    @property
    def kv_bytes(self) -> int:
        """Bytes of K and V of all layers, in float16."""
        rows = self.layers * self.shape.kv_heads * 2 * self.shape.context
        return rows * self.shape.depth * ITEM_BYTES

    @property
    def has_data(self) -> bool:
        """Whether K and V are computed and checked."""
        return self.kv_bytes <= CHECKED_BYTES

    @property
    def cost(self) -> int:
        """Bytes on links, and the SIPs that are built."""
        return self.kv_bytes + (self.sips << 23)

    def __str__(self) -> str:
        return f"{self.prefill} to {self.decode} SIPs {self.order}, {self.shape.context} tokens"


def plan_points(topology: TopologyText, sizes: KvSizes) -> tuple[KvPoint, ...]:
    """All points; raises `UsageError` for sizes that heads or PEs do not divide."""
    file = TopologyFile.of(topology.text)
    if file["system.sips"]["fabric"] != "direct":
        raise UsageError(
            f"--topology {topology.source}: system.sips.fabric is "
            f"{file['system.sips']['fabric']!r}; this study is about links between SIPs (direct)"
        )
    pes = file.cubes * file.pes_per_cube
    for tokens, (prefill, decode) in product(sizes.tokens, sizes.pairs):
        rows = 2 * tokens * LLAMA_70B.kv_heads // max(prefill, decode)
        if rows % pes:
            raise UsageError(
                f"--tokens {tokens}: {prefill} to {decode} SIPs exchange {rows} rows of K and V, "
                f"which do not divide by the {pes} PEs of a SIP"
            )
    counts = {sum(pair) for pair in sizes.pairs}
    texts = {sips: _on_network(file, sizes.network, sips).text for sips in counts}
    return tuple(
        KvPoint(
            topology=texts[size.prefill + size.decode],
            prefill=size.prefill,
            decode=size.decode,
            order=size.order,
            shape=replace(
                LLAMA_70B, context=size.tokens, tokens=min(sizes.new_tokens, size.tokens)
            ),
            layers=sizes.layers,
        )
        for size in sweep(sizes)
    )


def sweep(sizes: KvSizes) -> Iterator[KvSize]:
    """The sizes of all rows, in their order."""
    for prefill, decode in sizes.pairs:
        for order in sizes.orders:
            for tokens in sizes.tokens:
                yield KvSize(prefill, decode, order, tokens)


def _on_network(file: TopologyFile, network: str, sips: int) -> TopologyFile:
    if network == "ring_1d":
        return file.on_a_ring(sips)
    columns, rows = grid_of(sips)
    grid = {"count": sips, "topology": network, "w": columns, "h": rows}
    return file.with_values({"system.sips": file["system.sips"] | grid})
