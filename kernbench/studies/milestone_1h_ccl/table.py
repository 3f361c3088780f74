"""The rows of the study as a table on the terminal."""

from kernbench.studies import table
from kernbench.studies.milestone_1h_ccl.reference import ASTRA_SIM, explained
from kernbench.studies.milestone_1h_ccl.rows import CclResults, CclRow
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


def print_table(results: CclResults) -> None:
    """A line for each all-reduce."""
    table.print_table(_COLUMNS, results.rows, _cells, _group)


def reference_lines() -> list[str]:
    """The times of ASTRA-sim, each with the closed form that explains it."""
    return [
        f"ASTRA-sim       {run.ranks:>2} NPUs {run.nbytes >> 20:>2} MiB {run.time_us:>8.2f} us, "
        f"explained {explained(run.ranks, run.nbytes).total_ns / 1000:.2f} us"
        for run in ASTRA_SIM
    ]


def _group(row: CclRow) -> tuple[object, ...]:
    return row.part, row.network, row.algorithm, row.buffer_kind


def _cells(row: CclRow) -> list[str]:
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
