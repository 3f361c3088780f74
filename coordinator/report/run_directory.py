"""The directory of a run: its configuration, its records and logs, and last its report."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from coordinator.aggregate import RunReport, sip_reports
from coordinator.plan import Plan
from coordinator.report.files import CCL, TOPOLOGY, write_ccl_trace, write_logs, write_report
from coordinator.report.record_files import import_early, write_records
from coordinator.report.record_rows import RecordRows
from coordinator.report.writing import WriterThread, Writing
from coordinator.watch import Collected
from runtime.core.output import write_output


class RunFiles:
    """The files of one run in `directory`.

    Without a trace these are `run.json`, and the send/receive trace if it was requested. A run with
    a trace has its records and logs as well: these are written in threads as soon as the LPs have
    sent everything, while the processes exit and the command prints the results. `imports` are
    modules that the command needs for them after the run.
    """

    def __init__(self, directory: Path, plan: Plan, imports: Sequence[str] = ()) -> None:
        self.directory = directory
        self._plan = plan
        self._imports = imports
        self._records: RecordRows | None = None
        self._writing = Writing()
        self._threads: list[WriterThread] = []

    def simulating(self) -> None:
        """The processes simulate: import what the files are written with."""
        if self._plan.trace:
            import_early(self._imports)

    def collected(self, collected: Collected) -> None:
        """Begin to write `collected`, to which nothing is added any more."""
        self._records = RecordRows(collected.records)
        if self._plan.trace:
            sips = sip_reports(collected.done)
            logs = partial(write_logs, self.directory, collected.logs, sips, self._writing)
            self._threads = [WriterThread(self._write_records), WriterThread(logs)]

    @property
    def records(self) -> RecordRows:
        """The records of the run, which has been collected."""
        if self._records is None:
            raise RuntimeError("the records of a run that has not been collected")
        return self._records

    def finish(self, collected: Collected, report: RunReport) -> None:
        """Wait for the files, and write the rest; of a run that has failed what has arrived.

        Raises `OutputError` for the first file that cannot be written, and `ProtocolError` for
        records that refer to texts which never came.
        """
        if self._records is None:
            self.collected(collected)
        try:
            for thread in self._threads:
                thread.wait()
        finally:
            # After an error, or at Ctrl-C, no large file is written to its end.
            self._writing.give_up()
        if self._plan.ccl_trace:
            write_ccl_trace(self.directory, collected.transfers)
        write_report(self.directory, report)

    def _write_records(self) -> None:
        # So that a reader of the records needs no file besides the directory.
        config = self._plan.config
        write_output(self.directory / TOPOLOGY, config.topology_text.encode())
        write_output(self.directory / CCL, config.ccl_text.encode())
        write_records(self.directory, self.records, self._writing)
