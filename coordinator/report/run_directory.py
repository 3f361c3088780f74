"""The directory of a run: its configuration, its records and logs, and last its report."""

from collections.abc import Callable, Sequence
from functools import partial

from coordinator.plan import Plan
from coordinator.report.aggregate import RunReport, sip_reports
from coordinator.report.background import Task, Writing
from coordinator.report.failed_reports import FailedReports
from coordinator.report.files import (
    CCL,
    CCL_TRACE,
    OP_LOG,
    RUN,
    TOPOLOGY,
    TRACE,
    write_ccl_trace,
    write_logs,
    write_report,
)
from coordinator.report.record_files import import_early, write_records
from coordinator.report.record_rows import RecordRows
from coordinator.report.run_lock import RunLock
from coordinator.watch.collected import Collected
from runtime.core.output import write_output
from runtime.core.run_tables import RECORDS
from runtime.core.sha256 import sha256_hex

Explain = Callable[[RecordRows, int], list[str]]


class RunFiles:
    """The files of one run, in the directory of `lock`, which is released at its end.

    Without a trace these are `run.json`, and the send/receive trace if it was requested. A run with
    a trace has its records and logs as well: these are written in threads as soon as the LPs have
    sent everything, while the processes exit and the command prints the results. A third one
    calls `explain` with the records and the simulated time of the run; `imports` are the modules
    that it needs. `failed` has the files and the explanation that could not be made.
    """

    def __init__(
        self,
        lock: RunLock,
        plan: Plan,
        explain: Explain | None = None,
        imports: Sequence[str] = (),
    ) -> None:
        self.directory = lock.directory
        self._lock = lock
        self._plan = plan
        self._explain = explain
        self._imports = imports
        self._has_begun = False
        self._writing = Writing()
        self._tables: Task[dict[str, str]] | None = None
        self._logs: Task[None] | None = None
        self.failed = FailedReports()
        self._explanation: Task[list[str]] | None = None

    def launched(self) -> None:
        """The processes are launched: import what the files are written with."""
        if self._plan.trace:
            import_early(self._imports)

    def collected(self, collected: Collected) -> None:
        """Begin to write and to explain `collected`, all of a run that has come to its end."""
        records = self._begin(collected)
        if self._explain is not None and records.tables:
            explain = partial(self._explain, records, collected.time_ps)
            # After the tables: two threads that compute take the interpreter from each other, and
            # what is written in between leaves the caches.
            self._explanation = Task(explain, after=[self._tables] if self._tables else [])

    def explanation(self) -> list[str]:
        """The lines that `explain` returns; none for a run without records or without an end, or if
        it fails.
        """
        if self._explanation is not None:
            with self.failed.attempt("explanation of the time"):
                return self._explanation.wait()
        return []

    def finish(self, collected: Collected, report: RunReport) -> None:
        """Wait for the files, and write the rest; of a run that has failed what has arrived.

        Raises `OutputError` for the first file that cannot be written, and `ProtocolError` for
        records that refer to texts which never came.
        """
        try:
            self._finish(collected, report)
        finally:
            self._lock.release()

    def _finish(self, collected: Collected, report: RunReport) -> None:
        if not self._has_begun:
            self._begin(collected)
        files = dict[str, str]()
        try:
            if self._tables:
                with self.failed.attempt(f"records ({RECORDS}/)"):
                    files = self._tables.wait()
            if self._logs:
                with self.failed.attempt(f"op log and trace ({OP_LOG}, {TRACE})"):
                    self._logs.wait()
        finally:
            # After an error, or at Ctrl-C, no large file is written to its end.
            self._writing.give_up()
        if self._plan.ccl_trace:
            with self.failed.attempt(f"send/receive trace ({CCL_TRACE})"):
                write_ccl_trace(self.directory, collected.transfers)
        with self.failed.attempt(f"report ({RUN})"):
            write_report(self.directory, report, files)

    def _begin(self, collected: Collected) -> RecordRows:
        """Write `collected`, to which nothing is added any more."""
        self._has_begun = True
        records = RecordRows(collected.records)
        if self._plan.trace:
            sips = sip_reports(collected.done)
            self._tables = Task(partial(self._write_records, records))
            self._logs = Task(
                partial(write_logs, self.directory, collected.logs, sips, self._writing)
            )
        return records

    def _write_records(self, records: RecordRows) -> dict[str, str]:
        # So that a reader of the records needs no file besides the directory.
        config = self._plan.config
        texts = {TOPOLOGY: config.topology_text.encode(), CCL: config.ccl_text.encode()}
        for name, text in texts.items():
            write_output(self.directory / name, text)
        hashes = write_records(self.directory, records, self._writing)
        return hashes | {name: sha256_hex(text) for name, text in texts.items()}
