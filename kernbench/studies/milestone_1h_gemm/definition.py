"""The study of matrix products: what it simulates, keeps and shows."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kernbench.studies.milestone_1h_gemm import table
from kernbench.studies.milestone_1h_gemm.measurement import measure
from kernbench.studies.milestone_1h_gemm.points import GemmPoint, plan_points
from kernbench.studies.milestone_1h_gemm.rows import GemmResults, GemmRow
from kernbench.studies.milestone_1h_gemm.shapes import Staging, parse_shapes
from kernbench.studies.milestone_1h_gemm.theory import GemmHardware
from kernbench.studies.parameter_study import ParameterStudy, TopologyText

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class GemmStudy(ParameterStudy[GemmPoint, GemmRow, GemmResults]):
    """Every one of `shapes`, written as MxKxN,MxKxN,..., in every staging of its operands."""

    results_name = "gemm_sweep.json"
    noun = "products"
    results_type = GemmResults

    def __init__(self, shapes: str) -> None:
        self._shapes = shapes

    def points(self, topology: TopologyText) -> Sequence[GemmPoint]:
        """Raises `UsageError` for wrong shapes, and for operands that do not fit in scratch."""
        return plan_points(topology, parse_shapes(self._shapes))

    def measure(self, point: GemmPoint) -> GemmRow:
        """One product."""
        return measure(point)

    def results(self, topology: TopologyText, rows: Sequence[GemmRow]) -> GemmResults:
        """With the hardware, which the bounds rest on."""
        return GemmResults(
            version=self.version,
            topology=topology.source,
            topology_hash=topology.hash,
            hardware=GemmHardware.of(topology.parsed),
            rows=tuple(rows),
        )

    def problem(self, results: GemmResults) -> str:
        """The figures need every shape in every staging."""
        found = {(row.shape, row.staging) for row in results.rows}
        full = {(row.shape, staging) for row in results.rows for staging in Staging}
        if results.rows and found == full:
            return ""
        return "there must be a row for every shape in every staging"

    def figures(self) -> Mapping[str, "Callable[[GemmResults], Figure]"]:
        """Stages, utilisation and theory."""
        from kernbench.studies.milestone_1h_gemm.figures import FIGURES

        return FIGURES

    def print_table(self, results: GemmResults) -> None:
        """A line for each product."""
        table.print_table(results)

    def passed(self, results: GemmResults) -> str:
        """With the product nearest to its bound."""
        nearest = min(results.rows, key=lambda row: row.ratio)
        return (
            f"{len(results.rows)} products: right against float64, none below its bound, "
            f"the nearest {nearest.label}, {nearest.ratio - 1:.1%} above"
        )
