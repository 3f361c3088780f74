"""The study: what it simulates, keeps and shows."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kernbench.studies import table
from kernbench.studies.number_list import rising_numbers
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from kernbench.studies.ring_attention.measurement import measure
from kernbench.studies.ring_attention.points import (
    DEPTH,
    MOST_TOKENS,
    RANKS,
    RingPoint,
    RingSize,
    plan_points,
    sweep,
)
from kernbench.studies.ring_attention.rows import RingResults, RingRow, RingSizes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = (
    "<division",
    "tokens",
    "SIPs",
    "time\n(us)",
    "kernels\n(us)",
    "least of\na SIP",
    "exposed\n(us)",
    "bound\n(us)",
    "<bound\nby",
    "bound /\ntime (%)",
    "<error\nto float64",
)


class RingAttentionStudy(ParameterStudy[RingPoint, RingRow, RingResults]):
    """Ring attention; `tokens` and `sips` are lists of numbers, separated by commas."""

    results_name = "ring_attention.json"
    noun = "layers"
    results_type = RingResults

    def __init__(self, *, tokens: str, sips: str, heads: int) -> None:
        self._tokens, self._sips, self._heads = tokens, sips, heads

    @property
    def sizes(self) -> RingSizes:
        """The sizes; raises `UsageError` for flags that are no such lists."""
        return RingSizes(
            heads=self._heads,
            depth=DEPTH,
            tokens=rising_numbers("--tokens", self._tokens, 1, MOST_TOKENS),
            sips=rising_numbers("--sips-list", self._sips, *RANKS),
        )

    def points(self, topology: TopologyText) -> Sequence[RingPoint]:
        """Raises `UsageError` for sizes that the chunks or the machine do not divide."""
        return plan_points(topology, self.sizes)

    def measure(self, point: RingPoint) -> RingRow:
        """One layer."""
        return measure(point)

    def results(self, topology: TopologyText, rows: Sequence[RingRow]) -> RingResults:
        """With the sizes of the sweep."""
        return RingResults(
            version=self.version,
            sizes=self.sizes,
            topology=topology.source,
            topology_hash=topology.hash,
            rows=tuple(rows),
        )

    def problem(self, results: RingResults) -> str:
        """The rows of the sweep."""
        found = [RingSize(row.division, row.tokens, row.sips) for row in results.rows]
        if found and found == list(sweep(results.sizes)):
            return ""
        return "there must be a row for each of its sizes"

    def figures(self) -> "Mapping[str, Callable[[RingResults], Figure]]":
        """Times against bounds, and kernels and exposed communication."""
        from kernbench.studies.ring_attention.figures import FIGURES

        return FIGURES

    def print_table(self, results: RingResults) -> None:
        """A line for each layer."""
        table.print_table(_COLUMNS, results.rows, _cells, lambda row: (row.division, row.tokens))

    def passed(self, results: RingResults) -> str:
        """With the layer nearest to its bound."""
        checked = sum(row.error is not None for row in results.rows)
        nearest = max(results.rows, key=lambda row: row.share)
        return (
            f"{len(results.rows)} layers: {checked} right against float64, the others without "
            f"data; none below its bound, the nearest {nearest.label} ({nearest.share:.0%})"
        )


def _cells(row: RingRow) -> list[str]:
    return [
        row.division.words,
        f"{row.tokens:,}",
        str(row.sips),
        f"{row.layer_ps / 1e6:,.2f}",
        f"{max(row.kernels_ps) / 1e6:,.2f}",
        f"{min(row.kernels_ps) / 1e6:,.2f}",
        f"{row.exposed_ps / 1e6:,.2f}",
        f"{row.bounds.bound_ps / 1e6:,.2f}",
        row.bounds.binds,
        f"{100 * row.share:.1f}",
        "no data" if row.error is None else f"{row.error:.1e}",
    ]
