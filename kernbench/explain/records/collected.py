"""The records of a run that has just ended, as the command has them in memory."""

from collections.abc import Mapping

import numpy as np

from coordinator.report.record_rows import RecordRows
from kernbench.explain.records.columns import Columns
from kernbench.explain.records.records import RunRecords
from runtime.core.run_tables import BIN_PS, LEAST_BIN_PS, LINKS, RunTable


def collected_records(sips: int, total_ps: int, records: RecordRows) -> RunRecords:
    """The tables of `records`, of a run on `sips` SIPs that ended at `total_ps`."""

    def read(table: RunTable, sip: int) -> Columns:
        metadata = {BIN_PS: str(records.bin_ps)} if table is LINKS else None
        return Columns.of_rows(table, records.rows(table, sip), records.texts(sip), metadata)

    return RunRecords(sips=range(sips), total_ps=total_ps, read=read)


def simulated_records(
    sips: int, total_ps: int, rows: Mapping[tuple[int, str], bytes], texts: Mapping[int, list[str]]
) -> RunRecords:
    """The tables of a run inside this process: packed rows by SIP and table, and the texts of each
    SIP. The loads of links are in the bins of their SIPs.
    """

    def read(table: RunTable, sip: int) -> Columns:
        packed = rows.get((sip, table.name), b"")
        names = [(each.name, str(each.packed)) for each in table.columns]
        metadata = {BIN_PS: str(LEAST_BIN_PS)} if table is LINKS else None
        array = np.frombuffer(packed, np.dtype(names))
        return Columns.of_rows(table, array, texts.get(sip, ()), metadata)

    return RunRecords(sips=range(sips), total_ps=total_ps, read=read)
