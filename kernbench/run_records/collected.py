"""The records of a run that has just ended, as the command has them in memory."""

from pathlib import Path

from msgspec import convert

from coordinator.aggregate import RunReport
from coordinator.plan import RunConfig
from coordinator.report.record_rows import RecordRows
from kernbench.run_records.columns import Columns
from kernbench.run_records.records import RecordedRun, RunSummary
from runtime.core.run_tables import BIN_PS, LINKS, RunTable


def collected_run(
    directory: Path, config: RunConfig, report: RunReport | RunSummary, records: RecordRows
) -> RecordedRun:
    """The run of `directory`, whose files need not be written yet, with the tables of `records`."""

    def read(table: RunTable, sip: int) -> Columns:
        metadata = {BIN_PS: str(records.bin_ps)} if table is LINKS else None
        return Columns.of_rows(table, records.rows(table, sip), records.texts(sip), metadata)

    return RecordedRun(
        name=str(directory),
        run=convert(report, RunSummary, from_attributes=True),
        topology_text=config.topology_text,
        ccl_text=config.ccl_text,
        read=read,
        directory=directory,
    )
