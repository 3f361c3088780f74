"""The study of a whole layer: what it measures, keeps and shows.

A layer with data is compared with float64.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernbench.benches.attention.queues import with_hypercube
from kernbench.benches.attention.reference import grouped_attention
from kernbench.benches.decoder_layer.projection import EPSILON
from kernbench.benches.decoder_layer.shape import (
    LAYERS,
    LLAMA_70B,
    MOST_KEYS,
    MOST_TOKENS,
    TOKENS,
    LayerShape,
)
from kernbench.benches.flags import check_least
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import no_records, simulate
from kernbench.studies.catalogue import LayerFlags, rising_numbers
from kernbench.studies.llama70b_layer.program import PARTS, LayerRun, layer_program
from kernbench.studies.llama70b_layer.rows import LayerPart, LayerResults, LayerRow, part_bounds
from kernbench.studies.llama70b_layer.weights import (
    LayerInputs,
    LayerWeights,
    random_inputs,
    random_weights,
)
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from kernbench.studies.study_results import sip_count
from kernbench.studies.table import RowTable, ns
from runtime.core.config.config_file import default_file, read_text
from runtime.core.errors import UsageError
from runtime.language.value import Array


@dataclass(frozen=True)
class LayerPoint:
    """A layer on `sips` SIPs of a topology file, given as text."""

    topology: str
    shape: LayerShape
    sips: int
    has_data: bool

    @property
    def cost(self) -> int:
        """Multiply-adds, which take longer with data; tiles of one token are as many as of 32.
        SIPs divide them, but each one has exchanges and launches of its own.
        """
        products = self.shape.weights * max(32, self.shape.tokens) * (8 if self.has_data else 1)
        return products * (8 + self.sips)

    def __str__(self) -> str:
        return (
            f"{self.shape.hidden} columns, {self.shape.tokens} new tokens of "
            f"{self.shape.context}, {sip_count(self.sips)}"
        )


def largest_error(
    shape: LayerShape, weights: LayerWeights, inputs: LayerInputs, runs: Mapping[int, LayerRun]
) -> float:
    """The largest difference of all ranks from float64, relative to the result's root mean
    square.
    """
    exact = layer_result(shape, weights, inputs)
    errors = list[float]()
    for run in runs.values():
        assert run.result is not None
        errors.append(float(np.abs(run.result - exact).max()))
    return max(errors) / float(np.sqrt((exact**2).mean()))


def layer_result(shape: LayerShape, weights: LayerWeights, inputs: LayerInputs) -> Array:
    """The result (tokens, hidden) of a whole layer."""
    exact = LayerWeights(
        (weights.gains[0].astype(np.float64), weights.gains[1].astype(np.float64)),
        *(matrix.astype(np.float64) for matrix in weights[1:]),
    )
    x = inputs.x.astype(np.float64)
    x += _attention(shape, _normalised(x, exact.gains[0]) @ exact.qkv, inputs) @ exact.output
    hidden = _normalised(x, exact.gains[1])
    gate = hidden @ exact.gate
    return x + (gate / (1 + np.exp(-gate)) * (hidden @ exact.up)) @ exact.down


def _normalised(x: Array, gain: Array) -> Array:
    return x / np.sqrt((x**2).mean(axis=1, keepdims=True) + EPSILON) * gain


def _attention(shape: LayerShape, qkv: Array, inputs: LayerInputs) -> Array:
    heads = qkv.reshape(shape.tokens, -1, shape.depth).transpose(1, 0, 2)
    q, k, v = np.split(heads, [shape.heads, shape.heads + shape.kv_heads])
    q, k = (_rotated(each, shape) for each in (q, k))
    if shape.is_decode:
        k, v = (
            np.concatenate([cache[:, :-1].astype(np.float64), new], 1)
            for cache, new in ((inputs.keys, k), (inputs.values, v))
        )
    return grouped_attention(q, k, v, causal=True).transpose(1, 0, 2).reshape(shape.tokens, -1)


def _rotated(heads: Array, shape: LayerShape) -> Array:
    """Pairs of adjacent columns as complex numbers, turned by an angle for each position."""
    positions = np.arange(shape.context - shape.tokens, shape.context)
    angles = np.outer(positions, 10000.0 ** (-np.arange(0, shape.depth, 2) / shape.depth))
    turned = (heads[..., 0::2] + 1j * heads[..., 1::2]) * np.exp(1j * angles)
    return np.stack([turned.real, turned.imag], -1).reshape(heads.shape)


SCALED_DOWN = LayerShape(
    hidden=512, inner=1024, heads=8, kv_heads=2, depth=64, tokens=1, context=256
)
"""A layer small enough to be computed, with blocks of every kind."""
SCALED_CUBES = {"w": 2, "h": 1}
"""The cubes of its SIPs."""
SCALED_SIPS = (1, 2)
SCALED_TOKENS = 128


class LayerStudy(ParameterStudy[LayerPoint, LayerRow, LayerResults]):
    """Decode behind a cache of tokens and prefill, on several numbers of SIPs."""

    results_name = "llama70b_layer.json"
    noun = "layers"
    results_type = LayerResults
    figures_module = "kernbench.studies.llama70b_layer.figures"
    table = RowTable[LayerRow](
        (
            ("<layer", lambda row: f"{'decode' if row.is_decode else 'prefill'} {row.hidden}"),
            ("tokens", lambda row: f"{row.tokens} of {row.context}"),
            ("SIPs", lambda row: str(row.sips)),
            ("qkv", lambda row: ns(row.parts[0].time_ps)),
            ("attention", lambda row: ns(row.parts[1].time_ps)),
            ("output", lambda row: ns(row.parts[2].time_ps)),
            ("all-reduce", lambda row: ns(row.parts[3].time_ps)),
            ("gate, up", lambda row: ns(row.parts[4].time_ps)),
            ("down", lambda row: ns(row.parts[5].time_ps)),
            ("all-reduce", lambda row: ns(row.parts[6].time_ps)),
            ("time\n(ns)", lambda row: ns(row.time_ps)),
            ("bound\n(ns)", lambda row: ns(row.bound_ps)),
            ("of bound\n(%)", lambda row: f"{row.bound_ps / row.time_ps:.1%}".rstrip("%")),
            ("exposed\n(%)", lambda row: f"{row.exposed_ps / row.time_ps:.1%}".rstrip("%")),
            ("tokens/s\n80 layers", lambda row: f"{row.tokens_per_s:,.0f}"),
            ("error", lambda row: "" if row.error is None else f"{row.error:.1e}"),
        ),
        group=lambda row: (row.hidden, row.tokens),
    )
    flags: LayerFlags

    def points(self, topology: TopologyText) -> Sequence[LayerPoint]:
        """Raises `UsageError` for sizes that SIPs, cubes or PEs do not divide."""
        check_least(1, context=self.flags.context)
        sips = rising_numbers("--sips-list", self.flags.sips_list, 1, LLAMA_70B.kv_heads)
        file = TopologyFile.of(topology.text)
        small = file.with_values({"sip.cube_mesh": SCALED_CUBES})
        decode = replace(LLAMA_70B, context=self.flags.context)
        points = [
            *_points(small, SCALED_DOWN, SCALED_SIPS, has_data=True),
            *_points(small, prefill_of(SCALED_DOWN, SCALED_TOKENS), SCALED_SIPS, has_data=True),
            *_points(file, decode, sips, has_data=False),
        ]
        if self.flags.tokens:
            prefill = prefill_of(LLAMA_70B, self.flags.tokens)
            points += _points(file, prefill, sips, has_data=False)
        return points

    def measure(self, point: LayerPoint) -> LayerRow:
        """Simulate one point."""
        shape = point.shape
        data = (random_weights(shape), random_inputs(shape)) if point.has_data else None
        world = simulate(
            layer_program(shape, point.sips, data),
            point.sips,
            topology=point.topology,
            ccl=with_hypercube(read_text(default_file("ccl.yaml"))),
            data=point.has_data,
            # The op log of a layer takes more memory than its simulation.
            on_records=no_records,
        )
        # The slowest rank: they meet in the all-reduces.
        slowest = max(world.returned.values(), key=lambda run: sum(run.parts_ps))
        bounds = part_bounds(point.topology, shape, point.sips)
        return LayerRow(
            sips=point.sips,
            tokens=shape.tokens,
            context=shape.context,
            hidden=shape.hidden,
            parts=tuple(
                LayerPart(name, time_ps, bound.time_ps, bound.limit)
                for name, time_ps, bound in zip(PARTS, slowest.parts_ps, bounds, strict=True)
            ),
            error=None if data is None else largest_error(shape, *data, world.returned),
        )

    def problem(self, results: LayerResults) -> str:
        """The figure needs a layer at full size."""
        return "" if results.headline else "there must be a row at full size"

    def findings(self, results: LayerResults) -> Iterable[str]:
        """The arithmetic behind the throughput."""
        fastest = max(results.headline, key=lambda row: (row.is_decode, row.tokens_per_s))
        yield (
            f"tokens/s = tokens / ({LAYERS} layers x time of a layer): {fastest.tokens} / "
            f"({LAYERS} x {ns(fastest.time_ps)} ns) = {fastest.tokens_per_s:,.0f} "
            f"in {fastest.label}"
        )

    def passed(self, results: LayerResults) -> str:
        """Summary of the checks that passed."""
        checked = sum(row.error is not None for row in results.rows)
        return (
            f"{len(results.rows)} layers: no part below its bound, {checked} layers of "
            f"{SCALED_DOWN.hidden} columns right against float64"
        )


def prefill_of(shape: LayerShape, tokens: int) -> LayerShape:
    """A layer whose tokens are all new; raises `UsageError` for a number without whole blocks."""
    if tokens % TOKENS or not TOKENS <= tokens <= MOST_TOKENS:
        raise UsageError(
            f"--tokens {tokens}: must be a multiple of {TOKENS} up to {MOST_TOKENS}; 0 leaves the "
            "prefill out"
        )
    return replace(shape, tokens=tokens, context=tokens)


def _points(
    file: TopologyFile, shape: LayerShape, sips: Sequence[int], *, has_data: bool
) -> list[LayerPoint]:
    pes = file.pes_per_cube
    if pes & (pes - 1):
        raise UsageError(f"--topology: {pes} PEs a cube; a power of 2 divides the layer")
    for count in sips:
        check_shape(shape, count, file.cubes, pes)
    return [LayerPoint(file.on_a_ring(count).text, shape, count, has_data) for count in sips]


def check_shape(shape: LayerShape, ranks: int, cubes: int, pes: int) -> None:
    """Raise `UsageError` for sizes that ranks, cubes or PEs do not divide."""
    if shape.kv_heads % ranks:
        raise UsageError(f"--sips-list {ranks}: the {shape.kv_heads} KV heads do not divide by it")
    own, all_pes = shape.of_rank(ranks), cubes * pes
    for name, size in (
        ("hidden columns", shape.hidden),
        ("columns of queries, keys and values", own.qkv),
        ("columns of the attention", own.heads * own.depth),
        ("columns of the MLP", own.inner),
    ):
        if size % (2 * all_pes):
            raise UsageError(f"{size} {name} of a SIP: not an even number for {all_pes} PEs")
    if cubes % own.kv_heads:
        raise UsageError(
            f"{own.kv_heads} heads of keys and values of a SIP do not divide {cubes} cubes"
        )
    if not shape.is_decode:
        return
    sharing = all_pes // own.kv_heads
    share = (
        f"--context {shape.context}: on {sip_count(ranks)}, {sharing} PEs share the keys of a head"
    )
    if shape.context % sharing:
        raise UsageError(f"{share}, so it must be a multiple of {sharing}")
    if shape.context // sharing > MOST_KEYS:
        raise UsageError(
            f"{share}, and the TCM of one has room for {MOST_KEYS}: at most {sharing * MOST_KEYS}"
        )
