"""The study of algorithms: what it simulates, keeps and shows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType

from kernbench.studies import table
from kernbench.studies.catalogue import AlgorithmFlags
from kernbench.studies.ccl_algorithms.measurement import measure
from kernbench.studies.ccl_algorithms.rows import (
    AlgorithmPoint,
    AlgorithmResults,
    AlgorithmRow,
    plan_points,
)
from kernbench.studies.ccl_algorithms.selection import (
    GAIN,
    algorithm_for,
    as_yaml,
    candidates,
    loss,
    tables_of,
)
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from runtime.ccl.config import CclConfig, load_ccl
from runtime.ccl.selection import Choice
from runtime.core.config.config_file import default_file, read_text


@dataclass(frozen=True)
class ComparisonLine:
    """A line of the table: the rows of all algorithms for one number of ranks and one size."""

    rows: tuple[AlgorithmRow, ...]
    chosen: str

    @property
    def faults(self) -> list[str]:
        """The faults of its rows."""
        return [fault for row in self.rows for fault in row.faults]

    @property
    def fastest(self) -> AlgorithmRow:
        """The row with the shortest time."""
        return min(self.rows, key=lambda row: row.time_ps)

    @property
    def loss(self) -> float:
        """Time of the chosen algorithm over that of the fastest, minus one."""
        [chosen] = (row for row in self.rows if row.algorithm == self.chosen)
        return chosen.time_ps / self.fastest.time_ps - 1


def print_table(rows: Sequence[AlgorithmRow]) -> None:
    """Print the times of all algorithms by collective, a line for each number of ranks and size.

    Grids of SIPs have a table of their own.
    """
    tables = tables_of(rows)
    for collective in dict.fromkeys(row.collective for row in rows):
        of = [row for row in rows if row.collective == collective]
        on_rings, on_grids = (
            [row for row in of if bool(row.grid) is grid] for grid in (False, True)
        )
        print(f"{collective}:")
        _print_calls(on_rings, tables[collective])
        if on_grids:
            print(f"{collective} on grids of SIPs:")
            _print_calls(on_grids, tables[collective], _GRID_COLUMNS)


_GRID_COLUMNS: dict[str, Callable[[AlgorithmRow], str]] = {
    "<SIPs": lambda row: row.grid,
    "cubes": lambda row: str(row.cubes),
}


def _print_calls(
    rows: Sequence[AlgorithmRow],
    chosen: Sequence[Choice],
    more: Mapping[str, Callable[[AlgorithmRow], str]] = MappingProxyType({}),
) -> None:
    names = tuple(dict.fromkeys(row.algorithm for row in rows))
    columns = (
        *more,
        "ranks",
        "bytes\na rank",
        *(f"{name}\n(ns)" for name in names),
        "<fastest",
        "<chosen",
        "longer by\n(%)",
    )
    table.print_table(
        columns,
        list(_lines(rows, chosen)),
        lambda line: [*(cell(line.rows[0]) for cell in more.values()), *_cells(line)],
        lambda line: (line.rows[0].ranks, line.rows[0].cubes),
    )


def findings(
    rows: Sequence[AlgorithmRow], held_out: Sequence[AlgorithmRow], ccl: CclConfig
) -> Iterator[str]:
    """Lines below the table: the selection as YAML, its loss at sizes that it was not made for, at
    those that it was made for, and the loss of each algorithm alone.

    The last line states whether `ccl.yaml` has this selection.
    """
    tables = tables_of(rows)
    yield from as_yaml(tables)
    yield ""
    for collective in dict.fromkeys(row.collective for row in rows):
        of = candidates(rows, collective)
        # For comparison: each algorithm at all sizes.
        alone = {
            name: (Choice(algorithm=name),) for name in dict.fromkeys(row.algorithm for row in of)
        }
        between = candidates(held_out, collective)
        if between:
            lost = _loss_text(between, tables[collective])
            yield f"{collective:<24}{'at held-out sizes':<20}{lost}"
        for name, choices in {"this table": tables[collective], **alone}.items():
            yield f"{collective:<24}{name:<20}{_loss_text(of, choices)}"
    on_grids = [row for row in rows if row.grid]
    if on_grids:
        lost = _loss_text(on_grids, tables["all_reduce"])
        yield f"{'on grids of SIPs':<24}{'this table':<20}{lost}"
    yield (
        "rule                    least mean of the times over ranks; "
        f"up to {GAIN:.0%} more is as good, if that saves a row"
    )
    # Equality of the parsed rows: comments and layout of the file do not matter.
    selection = ccl.file.selection
    has = selection is not None and dict(selection.by_size) == tables
    yield f"ccl.yaml                has {'these' if has else 'other'} tables"


def _loss_text(rows: Sequence[AlgorithmRow], chosen: Sequence[Choice]) -> str:
    lost = loss(rows, chosen)
    worst = lost.worst_row
    if not lost.worst:
        return "always the fastest"
    cubes = f", {worst.cubes} cubes" if worst.grid else ""
    worst_call = f"{worst.algorithm}, {worst.ranks} ranks{cubes}, {worst.nbytes} B"
    return (
        f"{lost.mean:.1%} longer than the fastest algorithm on the mean, "
        f"at most {lost.worst:.1%} ({worst_call})"
    )


def _lines(rows: Sequence[AlgorithmRow], chosen: Sequence[Choice]) -> Iterator[ComparisonLine]:
    # A dict keeps the order of the rows and drops duplicates.
    for call in dict.fromkeys(row.call for row in rows):
        compared = tuple(row for row in rows if row.call == call)
        yield ComparisonLine(compared, algorithm_for(chosen, compared[0]))


def _cells(line: ComparisonLine) -> list[str]:
    first = line.rows[0]
    times = (f"{table.ns(row.time_ps)}{' WRONG' if row.faults else ''}" for row in line.rows)
    return [
        str(first.ranks),
        f"{first.nbytes:,}",
        *times,
        line.fastest.algorithm,
        line.chosen,
        f"{100 * line.loss:.1f}",
    ]


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
    figures_module = "kernbench.studies.ccl_algorithms.figures"
    flags: AlgorithmFlags

    def points(self, topology: TopologyText) -> Sequence[AlgorithmPoint]:
        """The points with the `ccl.yaml` of the current directory, or the shipped one."""
        ccl = read_text(default_file("ccl.yaml"))
        return plan_points(topology.text, ccl, self.flags.max_bytes)

    def measure(self, point: AlgorithmPoint) -> AlgorithmRow:
        """Simulate one call."""
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

    def print_table(self, results: AlgorithmResults) -> None:
        """A line for each collective, number of ranks and size."""
        print_table(results.of_tables)

    def findings(self, results: AlgorithmResults) -> Iterator[str]:
        """The selection table, and whether `ccl.yaml` has it."""
        return findings(results.of_tables, results.held_out, load_ccl())

    def passed(self, results: AlgorithmResults) -> str:
        """Number of calls."""
        return f"{len(results.rows)} collectives: every result right bit by bit"


def _is_complete(points: Sequence[_Point]) -> bool:
    """Whether there is one point for all algorithms, systems and sizes."""
    return sorted(points) == sorted(product(*map(set, zip(*points, strict=True))))
