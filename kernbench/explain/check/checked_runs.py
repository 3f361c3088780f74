"""Checks all simulations inside a block of code: those of `kernbench.simulate`, and runs of the
command, in this process or in one that it starts.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from kernbench.explain.check.findings import Findings, check_records
from kernbench.explain.check.report import finding_lines
from kernbench.explain.records.collected import simulated_records
from kernbench.simulation import Simulation, on_simulated
from runtime.wire.environment import CHECK_RACES

_reports: ContextVar[list[str] | None] = ContextVar("reports of checked runs", default=None)


@contextmanager
def checked_runs(*, is_strict: bool) -> Generator[list[str]]:
    """Check the simulations inside; the list has the text of those with a report.

    A run of the command in another process has its check by the environment: it prints the report,
    and ends with exit code 1.
    """
    reports = list[str]()

    def check(name: str, world: Simulation) -> None:
        sips = len(world.done.sips)
        records = simulated_records(sips, world.time_ps, world.rows, world.texts)
        note_findings(check_records(records, is_strict=is_strict), name)

    before = os.environ.get(CHECK_RACES)
    checking, collecting = on_simulated.set(check), _reports.set(reports)
    os.environ[CHECK_RACES] = "strict" if is_strict else "1"
    try:
        yield reports
    finally:
        on_simulated.reset(checking)
        _reports.reset(collecting)
        del os.environ[CHECK_RACES]
        if before is not None:
            os.environ[CHECK_RACES] = before


def note_findings(findings: Findings, name: str) -> None:
    """Add the report of a run, if it has any, to the list of the block around it."""
    reports = _reports.get()
    if reports is not None and findings.reports:
        reports.append("\n".join(finding_lines(findings, name)))
