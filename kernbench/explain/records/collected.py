"""The records of a run that has just ended, as the command has them in memory."""

from coordinator.report.record_rows import RecordRows
from kernbench.explain.records.columns import Columns
from kernbench.explain.records.records import RunRecords
from runtime.core.run_tables import BIN_PS, LINKS, RunTable


def collected_records(sips: int, total_ps: int, records: RecordRows) -> RunRecords:
    """The tables of `records`, of a run on `sips` SIPs that ended at `total_ps`."""

    def read(table: RunTable, sip: int) -> Columns:
        metadata = {BIN_PS: str(records.bin_ps)} if table is LINKS else None
        return Columns.of_rows(table, records.rows(table, sip), records.texts(sip), metadata)

    return RunRecords(sips=range(sips), total_ps=total_ps, read=read)
