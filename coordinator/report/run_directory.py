"""Writes the directory of a run: its configuration, its records, then its logs and its report."""

from pathlib import Path

from coordinator.aggregate import RunReport, sip_reports
from coordinator.plan import Plan
from coordinator.report.files import CCL, TOPOLOGY, write_ccl_trace, write_files
from coordinator.report.record_files import write_records
from coordinator.report.record_rows import RecordRows
from coordinator.session import RunResult
from runtime.core.output import write_output


def write_run(directory: Path, plan: Plan, result: RunResult, report: RunReport) -> RecordRows:
    """Write all files of a run, of one that has failed those of what arrived before; returns its
    records.

    Without a trace these are `run.json`, and the send/receive trace if it was requested. Raises
    `OutputError` for the first file that cannot be written.
    """
    collected = result.collected
    records = RecordRows(collected.records)
    if plan.ccl_trace:
        write_ccl_trace(directory, collected.transfers)
    if plan.trace:
        # So that a reader of the records needs no file besides the directory.
        write_output(directory / TOPOLOGY, plan.config.topology_text.encode())
        write_output(directory / CCL, plan.config.ccl_text.encode())
        write_records(directory, records)
    sips = sip_reports(collected.done)
    write_files(directory, report, collected.logs if plan.trace else None, sips)
    return records
