"""The row of a point, from what the LPs of a run have reported."""

import msgspec
import pytest

from coordinator.report.aggregate import run_digest
from coordinator.session import RunResult
from coordinator.watch.collected import Collected
from kernbench.sweep.row import SweepRow, row_of
from runtime.core.bench_registry import BenchOutcome, Column, PerfRow, Table, TableRow
from runtime.wire.control import Done
from runtime.wire.reports import SipReport
from tests.support.sessions import plan

ROW = PerfRow(1024, 256, "f32", "sum", 4_000, 0.25, 0.5, 0)
TABLE = Table((Column("size", "B"),), (Column("rate", "GB/s"),), (TableRow((64,), 3_000, (0.5,)),))


def reports(outcome: BenchOutcome | None, time_ps: int) -> list[SipReport]:
    return [SipReport(sip, f"{sip}", time_ps, True, outcome, {}, (), "") for sip in range(2)]


def result(outcome: BenchOutcome | None, time_ps: int = 5_000) -> RunResult:
    """The result of a run on two SIPs without records."""
    done = {
        report.sip: Done(report.sip, (report,), 500, 10, 20, 30, 0.25, 0.75)
        for report in reports(outcome, time_ps)
    }
    return RunResult(Collected(done, reached_ps={0: time_ps}), None, 0.5, 2.0)


def test_a_row_has_the_hash_time_digest_and_shares_of_its_run():
    row = row_of(plan(2), result(None))
    assert row == SweepRow(
        config_hash=plan(2).config.hash,
        time_ps=5_000,
        digest=run_digest(reports(None, 5_000)),
        # Without records nothing has happened.
        shares={
            "compute": 0.0,
            "memory stall": 0.0,
            "exposed communication": 0.0,
            "launch": 0.0,
            "idle": 100.0,
        },
    )


def test_a_run_that_took_no_time_has_no_shares():
    assert row_of(plan(2), result(None, 0)).shares == {}


def test_the_table_of_a_collective_has_labels_and_values():
    row = row_of(plan(2), result(BenchOutcome("x", 2, 0, (ROW,))))
    assert row.table == Table(
        (Column("size", "bytes"), Column("count"), Column("dtype"), Column("redop")),
        (Column("algbw", "GB/s"), Column("busbw", "GB/s")),
        (TableRow((1024, 256, "f32", "sum"), 4_000, (0.25, 0.5)),),
    )


def test_the_table_of_another_bench_is_kept():
    assert row_of(plan(2), result(BenchOutcome("x", 2, 0, table=TABLE))).table == TABLE


def test_wrong_results_are_a_fault_without_numbers():
    row = row_of(plan(2), result(BenchOutcome("ring", 3, 1, (ROW,))))
    assert row == SweepRow(fault="ring: 2 of 8 WRONG")


@pytest.mark.parametrize("outcome", [None, BenchOutcome("x", 2, 0, table=TABLE)])
def test_a_row_survives_its_file(outcome: BenchOutcome | None):
    row = row_of(plan(2), result(outcome))
    assert msgspec.json.decode(msgspec.json.encode(row), type=SweepRow) == row
