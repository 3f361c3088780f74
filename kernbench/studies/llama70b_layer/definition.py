"""The study of a whole layer: what it simulates, keeps and shows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kernbench.benches.flags import check_least
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies import table
from kernbench.studies.llama70b_layer.measurement import LayerPoint, measure
from kernbench.studies.llama70b_layer.rows import LayerResults, LayerRow
from kernbench.studies.llama70b_layer.shape import (
    LAYERS,
    LLAMA_70B,
    MOST_TOKENS,
    TOKENS,
    LayerShape,
)
from kernbench.studies.number_list import rising_numbers
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from kernbench.studies.table import ns
from runtime.core.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALED_DOWN = LayerShape(
    hidden=512, inner=1024, heads=8, kv_heads=2, depth=64, tokens=1, context=256
)
"""A layer small enough to be computed, with blocks of every kind."""
SCALED_CUBES = {"w": 2, "h": 1}
"""The cubes of its SIPs."""
SCALED_SIPS = (1, 2)
SCALED_TOKENS = 128

_COLUMNS = (
    "<layer",
    "tokens",
    "SIPs",
    "qkv",
    "attention",
    "output",
    "all-reduce",
    "gate, up",
    "down",
    "all-reduce",
    "time\n(ns)",
    "bound\n(ns)",
    "of bound\n(%)",
    "exposed\n(%)",
    "tokens/s\n80 layers",
    "error",
)


class LayerStudy(ParameterStudy[LayerPoint, LayerRow, LayerResults]):
    """Decode behind a cache of `context` tokens and prefill of `tokens` tokens, on the numbers of
    SIPs in the list `sips`.
    """

    results_name = "llama70b_layer.json"
    noun = "layers"
    results_type = LayerResults

    def __init__(self, context: int, tokens: int, sips: str) -> None:
        self._context, self._tokens, self._sips = context, tokens, sips

    def points(self, topology: TopologyText) -> Sequence[LayerPoint]:
        """Raises `UsageError` for sizes that SIPs, cubes or PEs do not divide."""
        check_least(1, context=self._context)
        sips = rising_numbers("--sips-list", self._sips, 1, LLAMA_70B.kv_heads)
        file = TopologyFile.of(topology.text)
        small = file.with_values({"sip.cube_mesh": SCALED_CUBES})
        decode = replace(LLAMA_70B, context=self._context)
        points = [
            *_points(small, SCALED_DOWN, SCALED_SIPS, has_data=True),
            *_points(small, prefill_of(SCALED_DOWN, SCALED_TOKENS), SCALED_SIPS, has_data=True),
            *_points(file, decode, sips, has_data=False),
        ]
        if self._tokens:
            prefill = prefill_of(LLAMA_70B, self._tokens)
            points += _points(file, prefill, sips, has_data=False)
        return points

    def measure(self, point: LayerPoint) -> LayerRow:
        """One layer."""
        return measure(point)

    def problem(self, results: LayerResults) -> str:
        """The figure needs a layer at full size."""
        return "" if results.headline else "there must be a row at full size"

    def figures(self) -> "Mapping[str, Callable[[LayerResults], Figure]]":
        """Time by part."""
        from kernbench.studies.llama70b_layer.drawing import FIGURES

        return FIGURES

    def print_table(self, results: LayerResults) -> None:
        """A line for each layer; times of parts in nanoseconds."""
        table.print_table(_COLUMNS, results.rows, _cells, lambda row: (row.hidden, row.tokens))

    def findings(self, results: LayerResults) -> Iterable[str]:
        """The arithmetic behind the throughput."""
        fastest = max(results.headline, key=lambda row: (row.is_decode, row.tokens_per_s))
        yield (
            f"tokens/s = tokens / ({LAYERS} layers x time of a layer): {fastest.tokens} / "
            f"({LAYERS} x {ns(fastest.time_ps)} ns) = {fastest.tokens_per_s:,.0f} "
            f"in {fastest.label}"
        )

    def passed(self, results: LayerResults) -> str:
        """What has been checked."""
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
    for count in sips:
        _check(file, shape, count)
    return [LayerPoint(file.on_a_ring(count).text, shape, count, has_data) for count in sips]


def _check(file: TopologyFile, shape: LayerShape, sips: int) -> None:
    pes = file.pes_per_cube
    if pes & (pes - 1):
        raise UsageError(f"--topology: {pes} PEs a cube; a power of 2 divides the layer")
    shape.check(sips, file.cubes, pes)


def _cells(row: LayerRow) -> list[str]:
    return [
        f"{'decode' if row.is_decode else 'prefill'} {row.hidden}",
        f"{row.tokens} of {row.context}",
        str(row.sips),
        *(ns(part.time_ps) for part in row.parts),
        ns(row.time_ps),
        ns(row.bound_ps),
        f"{row.bound_ps / row.time_ps:.1%}".rstrip("%"),
        f"{row.exposed_ps / row.time_ps:.1%}".rstrip("%"),
        f"{row.tokens_per_s:,.0f}",
        "" if row.error is None else f"{row.error:.1e}",
    ]
