"""The table of a bench: merged over the ranks, sent over the wire, printed."""

import pytest

from coordinator.report.aggregate import merge_outcomes
from coordinator.report.tables import bench_table
from runtime.core.bench_registry import BenchOutcome, Column, Table, TableRow
from runtime.core.errors import ProtocolError
from runtime.wire.codec import decode_from_lp, encode_control
from runtime.wire.control import Done
from runtime.wire.reports import SipReport

LABELS, FIGURES = (
    (Column("case"), Column("size", "B")),
    (Column("rate", "GB/s"), Column("bound by")),
)


def table(*times_ps: int, labels: tuple[Column, ...] = LABELS, case: str = "case") -> Table:
    rows = (
        TableRow((f"{case} {number}", 64), time_ps, (6400 / time_ps, "memory"))
        for number, time_ps in enumerate(times_ps)
    )
    return Table(labels, FIGURES, tuple(rows))


def report(sip: int, own: Table | None) -> SipReport:
    return SipReport(sip, "", 0, True, BenchOutcome("x", 1, 0, table=own), {}, (), "")


def test_each_row_is_that_of_the_slowest_rank():
    merged = merge_outcomes([report(0, table(100, 500)), report(1, table(300, 200))])
    assert merged is not None
    assert merged.table == Table(LABELS, FIGURES, (table(300).rows[0], table(100, 500).rows[1]))
    assert merged.ok == 2


def test_ranks_without_tables_have_none_together():
    merged = merge_outcomes([report(0, None), report(1, None)])
    assert merged is not None
    assert merged.table is None


@pytest.mark.parametrize(
    "other",
    [None, table(100, 200), table(100, labels=LABELS[::-1]), table(100, case="other")],
    ids=["no table", "more rows", "other columns", "other labels"],
)
def test_tables_of_ranks_that_measured_different_things_are_refused(other: Table | None):
    with pytest.raises(ProtocolError, match="their tables differ in more than times and values"):
        merge_outcomes([report(0, table(100)), report(1, other)])


def test_a_table_crosses_the_wire():
    done = Done(0, (report(0, table(100, 200)),), 1, 2, 3, 4, 0.5, 0.5)
    assert decode_from_lp(encode_control(done), "LP 0") == done


def test_a_table_has_headings_with_units_and_numbers_one_below_the_other():
    assert list(bench_table(table(1_234_567, 100))) == [
        "#   case  size       time    rate  bound by",
        "           (B)       (ns)  (GB/s)",
        "  case 0    64  1,234.567   0.005    memory",
        "  case 1    64      0.100  64.000    memory",
    ]
