"""The rows of the study as a table on the terminal, and the selection that follows from them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernbench.studies import table
from kernbench.studies.ccl_algorithms.rows import AlgorithmRow
from kernbench.studies.ccl_algorithms.selection import (
    GAIN,
    algorithm_for,
    as_yaml,
    candidates,
    loss,
    selected_table,
    tables_of,
)
from runtime.ccl.config import CclConfig
from runtime.ccl.selection import Choice


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
    """By collective, a line for each number of ranks and size, with the times of all algorithms."""
    for collective in dict.fromkeys(row.collective for row in rows):
        print(f"{collective}:")
        _print_collective([row for row in rows if row.collective == collective])


def _print_collective(rows: Sequence[AlgorithmRow]) -> None:
    names = tuple(dict.fromkeys(row.algorithm for row in rows))
    columns = (
        "ranks",
        "bytes\na rank",
        *(f"{name}\n(ns)" for name in names),
        "<fastest",
        "<chosen",
        "longer by\n(%)",
    )
    table.print_table(columns, list(_lines(rows)), _cells, lambda line: line.rows[0].ranks)


def findings(rows: Sequence[AlgorithmRow], ccl: CclConfig) -> Iterator[str]:
    """Lines below the table: the selection as YAML, its loss and that of each algorithm alone.

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
        for name, choices in {"this table": tables[collective], **alone}.items():
            yield f"{collective:<24}{name:<20}{_loss_text(of, choices)}"
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
    where = f"{worst.algorithm}, {worst.ranks} ranks, {worst.nbytes} B"
    return (
        f"{lost.mean:.1%} longer than the fastest algorithm on the mean, "
        f"at most {lost.worst:.1%} ({where})"
    )


def _lines(rows: Sequence[AlgorithmRow]) -> Iterator[ComparisonLine]:
    chosen = selected_table(candidates(rows, rows[0].collective))
    # A dict keeps the order of the rows and drops duplicates.
    for ranks, nbytes in dict.fromkeys((row.ranks, row.nbytes) for row in rows):
        compared = tuple(row for row in rows if (row.ranks, row.nbytes) == (ranks, nbytes))
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
