"""The rows of the sweep as a table on the terminal."""

from collections.abc import Sequence

from kernbench.studies import table
from kernbench.studies.milestone_1h_ccl.reference import FIGURES, explained
from kernbench.studies.milestone_1h_ccl.rows import Row, Sweep
from kernbench.studies.table import ns

_COLUMNS = (
    "<part",
    "<SIPs",
    "<algorithm",
    "<queues",
    "slots",
    "bytes\na PE",
    "time\n(ns)",
    "alpha-beta\n(ns)",
    "time /\nalpha-beta",
    "explained\n(ns)",
    "busbw\n(GB/s)",
    "wrong",
)


def print_table(sweep: Sweep) -> None:
    """A line for each point."""
    table.print_table(_COLUMNS, sweep.rows, _cells, _group)


def verdict(rows: Sequence[Row]) -> list[str]:
    """One line that says that all is well, or a line for each fault."""
    return table.verdict(
        rows,
        lambda row: f"{row.network} {row.algorithm} {row.buffer_kind} {row.nbytes} B",
        f"{len(rows)} all-reduces: every sum right bit by bit, none below its bound",
    )


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
        row.part,
        str(row.network),
        row.algorithm,
        row.buffer_kind,
        str(row.slots),
        f"{row.nbytes:,}",
        ns(row.time_ps),
        ns(row.alpha_beta_ps),
        f"{row.ratio:.3f}",
        "" if row.parts is None else ns(row.parts.total_ps),
        f"{row.busbw_gbs:.2f}",
        "FAULT" if row.faults else str(row.wrong),
    ]
