"""The rows of the sweep as a table on the terminal."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from benches.milestone_1h_ccl.reference import FIGURES, explained
from benches.milestone_1h_ccl.rows import Row, Sweep

MIN_WIDTH = 300
"""Columns a table may have; where the output has fewer, its lines are longer, and nothing is cut off."""
_COLUMNS = (
    "<part", "<SIPs", "<algorithm", "<queues", "slots", "bytes\na PE", "time\n(ns)", "alpha-beta\n(ns)", "time /\nalpha-beta",
    "explained\n(ns)", "busbw\n(GB/s)", "wrong",
)  # fmt: skip


def print_table(sweep: Sweep) -> None:
    """A line for each point, then the figures of ASTRA-sim."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for column in _COLUMNS:
        justify = "left" if column.startswith("<") else "right"
        table.add_column(column.removeprefix("<"), justify=justify, no_wrap=True)
    for row, following in zip(sweep.rows, (*sweep.rows[1:], None), strict=True):
        last = following is None or _group(following) != _group(row)
        table.add_row(*_cells(row), style="red" if row.faults else "", end_section=last)
    console = Console(highlight=False)
    console.width = max(console.width, MIN_WIDTH)
    with console.capture() as drawn:
        console.print(table)
    print("\n".join(line.rstrip() for line in drawn.get().splitlines()), end="\n\n")


def verdict(rows: Sequence[Row]) -> list[str]:
    """One line that says that all is well, or a line for each fault."""
    faults = [
        f"{row.network} {row.algorithm} {row.buffer_kind} {row.nbytes} B: {fault}" for row in rows for fault in row.faults
    ]
    if faults:
        return [f"{len(faults)} FAULTS", *faults]
    return [f"{len(rows)} all-reduces: every sum right bit by bit, none below its bound"]


def reference_lines() -> list[str]:
    """The figures of ASTRA-sim, each with the closed form that explains it."""
    return [
        f"ASTRA-sim       {figure.ranks:>2} NPUs {figure.nbytes >> 20:>2} MiB {figure.time_us:>8.2f} us, "
        f"explained {explained(figure.ranks, figure.nbytes).total_ns / 1000:.2f} us"
        for figure in FIGURES
    ]


def _group(row: Row) -> tuple[object, ...]:
    return row.part, row.network, row.algorithm, row.buffer_kind


def _cells(row: Row) -> list[str]:
    return [
        row.part, str(row.network), row.algorithm, row.buffer_kind, str(row.slots), f"{row.nbytes:,}", _ns(row.time_ps),
        _ns(row.alpha_beta_ps), f"{row.ratio:.3f}", "" if row.parts is None else _ns(row.parts.total_ps),
        f"{row.busbw_gbs:.2f}", "FAULT" if row.faults else str(row.wrong),
    ]  # fmt: skip


def _ns(ps: float) -> str:
    return f"{ps / 1000:,.1f}"
