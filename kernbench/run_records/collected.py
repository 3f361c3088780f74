"""The records of a run that has just ended, as the command has them in memory."""

from dataclasses import replace
from pathlib import Path

from coordinator.report.record_rows import RecordRows
from kernbench.run_records.columns import Columns
from kernbench.run_records.directory import open_run
from kernbench.run_records.records import RecordedRun
from runtime.core.run_tables import BIN_PS, LINKS, RunTable


def collected_run(directory: Path, records: RecordRows) -> RecordedRun:
    """The run that was written to `directory`, with the tables of `records`."""

    def read(table: RunTable, sip: int) -> Columns:
        metadata = {BIN_PS: str(records.bin_ps)} if table is LINKS else None
        return Columns.of_rows(table, records.rows(table, sip), records.texts(sip), metadata)

    return replace(open_run(directory), read=read)
