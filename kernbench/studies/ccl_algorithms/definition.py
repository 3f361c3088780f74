"""The study of algorithms: what it simulates, keeps and shows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

from kernbench.studies.ccl_algorithms import table
from kernbench.studies.ccl_algorithms.measurement import measure
from kernbench.studies.ccl_algorithms.points import AlgorithmPoint, plan_points
from kernbench.studies.ccl_algorithms.rows import AlgorithmResults, AlgorithmRow
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from runtime.ccl.config import load_ccl
from runtime.core.config.config_file import default_file, read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_Point = tuple[str, tuple[str, int, int], int]
"""(algorithm, (grid, cubes, ranks), bytes)."""


class AlgorithmStudy(ParameterStudy[AlgorithmPoint, AlgorithmRow, AlgorithmResults]):
    """Every collective by algorithm, number of ranks and size up to `max_bytes` a rank."""

    results_name = "ccl_algorithms.json"
    csv_name = "ccl_algorithms.csv"
    noun = "collectives"
    version = 4
    indent = 20
    results_type = AlgorithmResults

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    def points(self, topology: TopologyText) -> Sequence[AlgorithmPoint]:
        """The points with the `ccl.yaml` of the current directory, or the shipped one."""
        return plan_points(topology.text, read_text(default_file("ccl.yaml")), self._max_bytes)

    def measure(self, point: AlgorithmPoint) -> AlgorithmRow:
        """One call."""
        return measure(point)

    def problem(self, results: AlgorithmResults) -> str:
        """The selection compares all algorithms at all sizes and numbers of ranks."""
        of: dict[tuple[str, bool, bool], list[_Point]] = {}
        for row in results.rows:
            system = row.grid, row.cubes, row.ranks
            of.setdefault((row.collective, row.grid != "", row.held_out), []).append(
                (row.algorithm, system, row.nbytes)
            )
        if of and all(map(_is_complete, of.values())):
            return ""
        return "there must be one row for every algorithm, number of ranks and size"

    def csv_columns(self) -> Mapping[str, Callable[[AlgorithmRow], object]]:
        """Collective, algorithm, ranks, size and time; on grids of SIPs also grid and cubes.

        `held_out` is 1 where the selection is made without the row.
        """
        return {
            "collective": lambda row: row.collective,
            "algorithm": lambda row: row.algorithm,
            "grid": lambda row: row.grid,
            "ranks": lambda row: row.ranks,
            "cubes": lambda row: row.cubes,
            "bytes_a_rank": lambda row: row.nbytes,
            "time_ns": lambda row: row.time_ps / 1000,
            "held_out": lambda row: int(row.held_out),
        }

    def figures(self) -> Mapping[str, "Callable[[AlgorithmResults], Figure]"]:
        """Time against size."""
        from kernbench.studies.ccl_algorithms.figures import FIGURES

        return FIGURES

    def print_table(self, results: AlgorithmResults) -> None:
        """A line for each collective, number of ranks and size."""
        table.print_table(results.of_tables)

    def findings(self, results: AlgorithmResults) -> Iterator[str]:
        """The selection table, and whether `ccl.yaml` has it."""
        return table.findings(results.of_tables, results.held_out, load_ccl())

    def passed(self, results: AlgorithmResults) -> str:
        """Number of calls."""
        return f"{len(results.rows)} collectives: every result right bit by bit"


def _is_complete(found: Sequence[_Point]) -> bool:
    """Whether there is one point for all algorithms, systems and sizes."""
    return sorted(found) == sorted(product(*map(set, zip(*found, strict=True))))
