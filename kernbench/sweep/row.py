"""The row of a point: hash, simulated time, digest, shares, and the table of its bench."""

from collections.abc import Mapping

from msgspec import Struct, field

from coordinator.plan import Plan
from coordinator.report.aggregate import merge_outcomes, run_digest, sip_reports
from coordinator.report.failed_reports import FailedReports
from coordinator.report.record_rows import RecordRows
from coordinator.session import RunResult
from kernbench.command.exit_codes import print_warning
from runtime.core.bench_registry import BenchOutcome, Column, PerfRow, Table, TableRow


class SweepRow(Struct, frozen=True, forbid_unknown_fields=True):
    """The result of one simulation, or its `fault` in a sentence; then other fields are empty.

    `shares` are the parts of the time as a run prints them at its end, in percent.
    """

    config_hash: str = ""
    time_ps: int = 0
    digest: str = ""
    shares: Mapping[str, float] = field(default_factory=dict[str, float])
    table: Table | None = None
    fault: str = ""


_COLLECTIVE_LABELS = (Column("size", "bytes"), Column("count"), Column("dtype"), Column("redop"))
_COLLECTIVE_VALUES = (Column("algbw", "GB/s"), Column("busbw", "GB/s"))
_DIGITS = 4
"""Decimals of a share."""


def row_of(plan: Plan, result: RunResult) -> SweepRow:
    """The row of a run that has come to its end."""
    sips = sip_reports(result.collected.done)
    outcome = merge_outcomes(sips)
    if outcome is not None and outcome.wrong:
        checks = outcome.wrong + outcome.ok + outcome.unchecked
        return SweepRow(fault=f"{outcome.label}: {outcome.wrong} of {checks} WRONG")
    return SweepRow(
        config_hash=plan.config.hash,
        time_ps=result.collected.time_ps,
        digest=run_digest(sips),
        shares=_shares(plan.sips, result),
        table=_table(outcome),
    )


def _shares(sips: int, result: RunResult) -> dict[str, float]:
    # Imported here: the process of the command makes no rows, and needs no arrays for them.
    from kernbench.explain.records.collected import collected_records
    from kernbench.explain.why.breakdown import rank_time
    from kernbench.explain.why.summary import time_shares

    collected = result.collected
    if not collected.time_ps:
        return {}
    failed = FailedReports()
    shares = dict[str, float]()
    with failed.attempt("explanation of the time"):
        records = collected_records(sips, collected.time_ps, RecordRows(collected.records))
        parts = time_shares([rank_time(records, sip) for sip in records.sips])
        shares = {part.title: round(share, _DIGITS) for part, share in parts.items()}
    for warning in failed.take():
        print_warning(warning)
    return shares


def _table(outcome: BenchOutcome | None) -> Table | None:
    """The table of a bench; that of a collective with labels and values as another's."""
    if outcome is None or not outcome.rows:
        return None if outcome is None else outcome.table
    rows = tuple(map(_row_of_collective, outcome.rows))
    return Table(_COLLECTIVE_LABELS, _COLLECTIVE_VALUES, rows)


def _row_of_collective(row: PerfRow) -> TableRow:
    labels = (row.size_bytes, row.count, row.dtype, row.redop)
    return TableRow(labels, row.time_ps, (row.algbw_gbs, row.busbw_gbs))
