"""The tables of a run in memory are those which are read from its files."""

from pathlib import Path

import pytest

from coordinator.report.background import Writing
from coordinator.report.record_files import remove_records, write_records
from coordinator.report.record_rows import RecordRows
from coordinator.watch.record_store import RecordStore
from kernbench.explain.records import Columns, open_run
from kernbench.explain.records.collected import collected_records
from runtime.core.run_tables import (
    COMMANDS,
    LINKS,
    MOST_BINS,
    OPS,
    PROGRAMS,
    STEPS,
    TABLES,
    Form,
)
from tests.support.run_tables import sign, tables, write_run

TEXTS = ("unused", "pe_dma", "load", "")


@pytest.fixture
def records() -> RecordRows:
    """Rows of two SIPs, of which the second needs bins of twice the least width."""
    stored = RecordStore()
    flow_end = [column.name for column in OPS.columns].index("flow_end")
    for flag in (0, 1, 1):
        values = [index % 3 + 1 for index in range(len(OPS.columns))]
        values[flow_end] = flag
        stored.add(0, "ops", OPS.packer.pack(*values), TEXTS if not flag else (), "LP 0")
    for table in (PROGRAMS, STEPS, COMMANDS):
        stored.add(0, table.name, table.packer.pack(*(1 for _ in table.columns)), (), "LP 0")
    for sip, bins in ((0, (0, 1, 2)), (1, (3, MOST_BINS))):
        for number in bins:
            row = LINKS.packer.pack(2, 1, number, 10, 20, 30, 1)
            stored.add(sip, "links", row, TEXTS if sip else (), "LP 0")
    return RecordRows(stored)


def contents(columns: Columns) -> dict[str, list[object]]:
    return {
        each.name: (
            [columns.text(each.name)[row] for row in range(len(columns))]
            if each.form is Form.TEXT
            else [columns[each.name].dtype.str, *columns[each.name].tolist()]
        )
        for each in columns.table.columns
    }


def test_columns_and_widths_are_those_of_the_files(tmp_path: Path, records: RecordRows) -> None:
    directory = write_run(tmp_path / "run", [tables(), tables()], total_ps=1)
    remove_records(directory)
    write_records(directory, records, Writing())
    sign(directory)
    written = open_run(directory)
    collected = collected_records(2, 1, records)
    assert (collected.sips, collected.total_ps) == (written.sips, written.total_ps)
    assert collected.bin_ps == written.bin_ps == 2048
    assert [len(written.table(table, 0)) for table in TABLES] == [3, 1, 1, 1, 2, 0, 0, 0, 0, 0]
    for sip in (0, 1):
        for table in TABLES:
            found = collected.table(table, sip)
            assert contents(found) == contents(written.table(table, sip))
            assert found.metadata == written.table(table, sip).metadata


def test_bins_are_united_where_they_are_wider(records: RecordRows) -> None:
    links = collected_records(2, 1, records).table(LINKS, 0)
    assert list(zip(links["bin"], links["nbytes"], strict=True)) == [(0, 20), (1, 10)]
