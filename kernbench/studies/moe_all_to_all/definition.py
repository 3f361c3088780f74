"""The study of a mixture of experts: what it simulates, keeps and shows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kernbench.studies import table
from kernbench.studies.moe_all_to_all.measurement import measure
from kernbench.studies.moe_all_to_all.points import MoeFlags, MoePoint, plan_points
from kernbench.studies.moe_all_to_all.rows import MoeResults, MoeRow
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from kernbench.studies.table import ns
from runtime.core.config.config_file import default_file, read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = (
    "ranks",
    "Zipf\nexponent",
    "skew",
    "<busiest port\nof the dispatch",
    "bytes",
    "dispatch\n(ns)",
    "bound\n(ns)",
    "ratio",
    "and combine\n(ns)",
    "bound\n(ns)",
    "ratio",
)


class MoeStudy(ParameterStudy[MoePoint, MoeRow, MoeResults]):
    """Dispatch and combine by number of ranks and exponent of the Zipf law, or of a file."""

    results_name = "moe_all_to_all.json"
    noun = "exchanges"
    results_type = MoeResults

    def __init__(self, flags: MoeFlags) -> None:
        self._flags = flags

    def points(self, topology: TopologyText) -> Sequence[MoePoint]:
        """With the `ccl.yaml` of the current directory, or the shipped one."""
        return plan_points(topology.text, read_text(default_file("ccl.yaml")), self._flags)

    def measure(self, point: MoePoint) -> MoeRow:
        """One dispatch and combine."""
        return measure(point)

    def results(self, topology: TopologyText, rows: Sequence[MoeRow]) -> MoeResults:
        """The rows, and the seed of all points."""
        return MoeResults(
            version=self.version,
            topology=topology.source,
            topology_hash=topology.hash,
            seed=self._flags.seed,
            rows=tuple(rows),
        )

    def problem(self, results: MoeResults) -> str:
        """The figure compares the exponents of each number of ranks."""
        return "" if results.rows else "there are no rows"

    def figures(self) -> Mapping[str, "Callable[[MoeResults], Figure]"]:
        """Time against skew, and the loads."""
        from kernbench.studies.moe_all_to_all.figures import FIGURES

        return FIGURES

    def print_table(self, results: MoeResults) -> None:
        """A line for each number of ranks and exponent."""
        table.print_table(_COLUMNS, results.rows, _cells, lambda row: row.ranks)

    def findings(self, results: MoeResults) -> Iterator[str]:
        """What a row moves, and how near the rows are to their bounds."""
        row = results.rows[0]
        yield (
            f"{'a rank':<{self.indent}}{row.tokens} tokens of {row.hidden} float16, {row.top_k} of "
            f"{row.experts} experts each, seed {results.seed}"
        )

    def passed(self, results: MoeResults) -> str:
        """What has been checked."""
        farthest = max(results.rows, key=lambda row: row.time_ps / row.bound_ps)
        return (
            f"{len(results.rows)} exchanges: every element right, none below its bound, "
            f"the farthest {farthest.label}, {farthest.time_ps / farthest.bound_ps:.2f} times it"
        )


def _cells(row: MoeRow) -> list[str]:
    return [
        str(row.ranks),
        row.routing,
        f"{row.skew:.2f}",
        row.port,
        f"{row.port_bytes:,}",
        ns(row.dispatch_ps),
        ns(row.dispatch_bound_ps),
        f"{row.dispatch_ps / row.dispatch_bound_ps:.3f}",
        ns(row.time_ps),
        ns(row.bound_ps),
        f"{row.time_ps / row.bound_ps:.3f}",
    ]
