"""The study of all-reduces: what it simulates, keeps and shows."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.milestone_1h_ccl import table
from kernbench.studies.milestone_1h_ccl.measurement import measure
from kernbench.studies.milestone_1h_ccl.networks import NETWORKS, RingLayout
from kernbench.studies.milestone_1h_ccl.points import CclPoint, joined, plan_points
from kernbench.studies.milestone_1h_ccl.rows import PARTS, CclResults, CclRow
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from runtime.core.config.config_file import default_file, read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class CclStudy(ParameterStudy[CclPoint, CclRow, CclResults]):
    """All-reduces of up to `max_bytes` a PE, by SIP topology, queue memory and algorithm."""

    results_name = "ccl_sweep.json"
    csv_name = "ccl_summary.csv"
    noun = "all-reduces"
    results_type = CclResults
    version = 2

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    def points(self, topology: TopologyText) -> Sequence[CclPoint]:
        """With the `ccl.yaml` of the current directory, or the shipped one."""
        return plan_points(topology.text, read_text(default_file("ccl.yaml")), self._max_bytes)

    def measure(self, point: CclPoint) -> CclRow:
        """One all-reduce."""
        return measure(point)

    def results(self, topology: TopologyText, rows: Sequence[CclRow]) -> CclResults:
        """With the ring in each network of the part `size`."""
        file = TopologyFile.of(topology.text)
        return CclResults(
            version=self.version,
            topology=topology.source,
            topology_hash=topology.hash,
            networks=NETWORKS,
            layouts=tuple(RingLayout.of(joined(file, each), each.sips) for each in NETWORKS),
            rows=tuple(rows),
        )

    def problem(self, results: CclResults) -> str:
        """The figures need all parts, and the ring of every network."""
        keys = {row.key for row in results.rows}
        if len(keys) != len(results.rows) or not all(map(results.of, PARTS)):
            return "there must be rows of all three parts, none twice"
        if len(results.networks) != len(results.layouts):
            return "there must be a layout for every network"
        return ""

    def csv_columns(self) -> Mapping[str, Callable[[CclRow], object]]:
        """The point, its time and the times of the closed forms."""
        return {
            "part": lambda row: row.part,
            "topology": lambda row: row.network.topology,
            "w": lambda row: row.network.w,
            "h": lambda row: row.network.h,
            "algorithm": lambda row: row.algorithm,
            "buffer_kind": lambda row: row.buffer_kind,
            "slots": lambda row: row.slots,
            "slot_bytes": lambda row: row.slot_bytes,
            "bytes_a_pe": lambda row: row.nbytes,
            "time_ns": lambda row: row.time_ps / 1000,
            "alpha_beta_ns": lambda row: round(row.alpha_beta_ps / 1000, 3),
            "explained_ns": _explained_ns,
            "ratio": lambda row: round(row.ratio, 4),
            "busbw_gbs": lambda row: round(row.busbw_gbs, 3),
            "slot_in_ns": lambda row: row.slot_in_ps / 1000,
            "slot_out_ns": lambda row: row.slot_out_ps / 1000,
            "wrong": lambda row: row.wrong,
        }

    def figures(self) -> Mapping[str, "Callable[[CclResults], Figure]"]:
        """Latency, queue memories, SIP topologies, and the other simulator."""
        from kernbench.studies.milestone_1h_ccl.figures import FIGURES

        return FIGURES

    def print_table(self, results: CclResults) -> None:
        """A line for each all-reduce."""
        table.print_table(results)

    def findings(self, results: CclResults) -> Sequence[str]:  # noqa: ARG002 - a constant
        """The times of the other simulator."""
        return table.reference_lines()

    def passed(self, results: CclResults) -> str:
        """Number of all-reduces."""
        count = len(results.rows)
        return f"{count} all-reduces: every sum right bit by bit, none below its bound"


def _explained_ns(row: CclRow) -> float | None:
    # The CSV file has an empty cell for None.
    return None if row.parts is None else round(row.parts.total_ps / 1000, 3)
