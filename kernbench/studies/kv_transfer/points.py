"""The points of the study, the computation of a layer of a prefill, and the bounds of its transfer.

The computation is a stand-in with the time of a layer on its roofline: the products of all PEs at
the peak of their GEMM engines, or the load of all weights from HBM, whichever takes longer. That is
the shortest computation, so the hardest one to hide a transfer behind. A kernel passes this time
with the vector engine, since a layer of llama-70B has millions of tiles, and then writes the keys
and values.

The heads that SIPs exchange are parts of an exchange
(`kernbench/oracle/theory/collectives/exchanges.py`): no transfer is faster than the bytes of the
busiest port. K and V are read once and written once from and to the HBM of all PEs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise, product
from math import ceil
from typing import NamedTuple

from kernbench import tl
from kernbench.benches.decoder_layer.shape import ITEM_BYTES, LAYERS, LLAMA_70B, LayerShape
from kernbench.benches.flags import check_choice, check_least
from kernbench.oracle.theory.bandwidths import gemm_bound_ps, own_memory_gbs, own_read_gbs
from kernbench.oracle.theory.collectives.exchanges import ExchangeBound, PartSizes
from kernbench.oracle.theory.engines.vector_engine import VectorEngine
from kernbench.oracle.theory.paths.sip_grid import SipGrid, grid_of
from kernbench.oracle.theory.roofline import bytes_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.catalogue import KvFlags, distinct_values, rising_numbers
from kernbench.studies.kv_transfer.rows import (
    HeadsMove,
    KvBounds,
    KvSizes,
    LinkLoad,
    RankOrder,
    Sides,
)
from kernbench.studies.parameter_study import TopologyText
from runtime.core.dtypes import float32
from runtime.core.errors import UsageError

LAYER_STEP = 16
"""K and V of layer i are those of layer 0 plus i times this: each layer has its own elements."""
_VECTORS, _BLOCK = 512, 1 << 15
"""Most vectors of an operation that passes time, most elements of K and V in TCM."""


class LayerWork(NamedTuple):
    """The work of a PE: square roots of `vectors` vectors of `lanes` elements, and `kv` elements of
    K and V for each rank of the other side that gets heads of the SIP.
    """

    vectors: int
    lanes: int
    kv: int


def layer_ps(file: TopologyFile, shape: LayerShape, sips: int) -> Fraction:
    """The roofline of a layer on all PEs of `sips` SIPs.

    New tokens pass the weights, and each sees all tokens before it, with twice `depth`
    multiplications for each head.
    """
    # Causal: new token i attends to all tokens of the prefix and to i + 1 new ones.
    before = shape.context - shape.tokens
    pairs = shape.tokens * before + shape.tokens * (shape.tokens + 1) // 2
    macs = shape.tokens * shape.weights + 2 * shape.heads * shape.depth * pairs
    products_ps = gemm_bound_ps(file, macs)
    weights_ps = bytes_ps(shape.weights * ITEM_BYTES, own_read_gbs(file))
    return max(products_ps, weights_ps) / (sips * file.cubes * file.pes_per_cube)


def layer_work(file: TopologyFile, shape: LayerShape, time_ps: Fraction, heads: int) -> LayerWork:
    """The work of each PE of a layer that takes `time_ps`, with `heads` heads for each rank."""
    engine = VectorEngine(file)
    vector_ps = engine.engine_ps(engine.cycles("sqrt"))
    return LayerWork(
        vectors=ceil(time_ps / vector_ps),
        lanes=engine.lanes,
        kv=2 * heads * shape.context * shape.depth // (file.cubes * file.pes_per_cube),
    )


def prefill_layer(work: LayerWork, number: int, *caches: tl.Pointer) -> None:
    """Kernel: layer `number`. `caches` are K and V of layer 0 for each rank that gets heads, then
    those to write.
    """
    ones = tl.full(min(work.vectors, _VECTORS) * work.lanes, 1, float32)
    for begin in range(0, work.vectors, _VECTORS):
        with tl.scratch():
            tl.sqrt(ones[: min(_VECTORS, work.vectors - begin) * work.lanes])
    pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    ranks = len(caches) // 2
    for source, target in zip(caches[:ranks], caches[ranks:], strict=True):
        for begin in range(pe * work.kv, (pe + 1) * work.kv, _BLOCK):
            count = min(_BLOCK, (pe + 1) * work.kv - begin)
            with tl.scratch():
                elements = tl.load(source + begin, count)
                tl.store(target + begin, elements + LAYER_STEP * number)


NETWORKS = ("ring_1d", "mesh_2d_no_wrap")
MOST_TOKENS = 1 << 17
"""The longest prompt."""


def sizes_of(flags: KvFlags) -> KvSizes:
    """The sizes of the sweep; raises `UsageError` for flags that name none."""
    if not 1 <= flags.layers <= LAYERS:
        raise UsageError(f"--layers {flags.layers}: llama-70B has 1 to {LAYERS} layers")
    check_least(1, new_tokens=flags.new_tokens)
    check_choice("network", flags.network, NETWORKS)
    return KvSizes(
        pairs=tuple(map(_pair, distinct_values("--pairs", flags.pairs))),
        orders=tuple(map(_order, distinct_values("--orders", flags.orders))),
        tokens=rising_numbers("--tokens", flags.tokens, 1, MOST_TOKENS),
        layers=flags.layers,
        new_tokens=flags.new_tokens,
        network=flags.network,
    )


def _pair(text: str) -> tuple[int, int]:
    heads = LLAMA_70B.kv_heads
    known = {str(count): count for count in range(1, heads + 1) if not heads % count}
    numbers = [known[part] for part in text.split(":") if part in known]
    if text.count(":") != 1 or len(numbers) != 2:
        raise UsageError(
            f"--pairs: {text!r} must be numbers of SIPs of the prefill and of the decode, such as "
            f"2:4, which divide the {heads} KV heads"
        )
    return numbers[0], numbers[1]


def _order(text: str) -> RankOrder:
    check_choice("orders", text, [each.value for each in RankOrder])
    return RankOrder(text)


CHECKED_BYTES = 1 << 23
"""A run with at most as many bytes of K and V has data, and every element is checked."""


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
        """The heads that move, with their source and target, the same in every layer."""
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
            topology=texts[prefill + decode],
            prefill=prefill,
            decode=decode,
            order=order,
            shape=replace(LLAMA_70B, context=tokens, tokens=min(sizes.new_tokens, tokens)),
            layers=sizes.layers,
        )
        for (prefill, decode), order, tokens in sweep(sizes)
    )


def sweep(sizes: KvSizes) -> Iterator[tuple[tuple[int, int], RankOrder, int]]:
    """The SIPs of both sides, the order and the tokens of all rows, in their order."""
    return product(sizes.pairs, sizes.orders, sizes.tokens)


def _on_network(file: TopologyFile, network: str, sips: int) -> TopologyFile:
    if network == "ring_1d":
        return file.on_a_ring(sips)
    return file.on_a_grid(network, *grid_of(sips))


def move_bytes(move: HeadsMove, shape: LayerShape) -> int:
    """Bytes of K and V of the heads that move."""
    return len(move.heads) * 2 * shape.context * shape.depth * ITEM_BYTES


def link_loads(
    file: TopologyFile, moves: Sequence[HeadsMove], shape: LayerShape
) -> tuple[LinkLoad, ...]:
    """The links that the heads of a layer pass, in order, with the pairs that share each."""
    grid, loads = SipGrid.of(file), defaultdict[tuple[int, int], Counter[tuple[int, int]]](Counter)
    for move in moves:
        ends = move.source, move.target
        for link in pairwise(grid.path(*ends)):
            loads[link][ends] += move_bytes(move, shape)
    return tuple(
        LinkLoad(source=here, target=there, nbytes=pairs.total(), pairs=tuple(sorted(pairs)))
        for (here, there), pairs in sorted(loads.items())
    )


def transfer_bounds(file: TopologyFile, moves: Sequence[HeadsMove], shape: LayerShape) -> KvBounds:
    """The bounds of one layer."""
    sips: int = file["system.sips.count"]
    rows, passed = [[0] * sips for _ in range(sips)], Counter[int]()
    for move in moves:
        rows[move.source][move.target] += len(move.heads) * 2 * shape.context
        nbytes = move_bytes(move, shape)
        passed.update({move.source: nbytes, move.target: nbytes})
    busiest = _exchanges(file.text).busiest(PartSizes(rows, shape.depth, ITEM_BYTES))
    alone_ps = float(bytes_ps(busiest.nbytes, file.number("ucie.bw_gbs")))
    memory_gbs = own_memory_gbs(file) * file.cubes * file.pes_per_cube
    return KvBounds(
        port=busiest.port,
        port_bytes=busiest.nbytes,
        link_ps=busiest.bound_ps,
        alpha_ps=busiest.bound_ps - alone_ps,
        memory_ps=float(bytes_ps(max(passed.values()), memory_gbs)),
    )


@cache
def _exchanges(topology: str) -> ExchangeBound:
    # It keeps the latencies of its routes, which take a second.
    return ExchangeBound(TopologyFile.of(topology))
