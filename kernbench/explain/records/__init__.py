"""Reads the directory of a run: its report, its configuration files and its tables.

`open_run(directory)` gives the `RecordedRun` that `why`, `web` and `trace` compute from. The tables
are those of `runtime.core.run_tables`, one for each SIP, as columns of numpy.
"""

from kernbench.explain.records.columns import Columns, Texts
from kernbench.explain.records.directory import open_run, read_report
from kernbench.explain.records.records import RecordedRun, RunRecords, RunSummary

__all__ = ["Columns", "RecordedRun", "RunRecords", "RunSummary", "Texts", "open_run", "read_report"]
