"""The section of the page of a run with its races and undefined values, if it has any."""

from html import escape

from kernbench.explain.check.findings import check_records
from kernbench.explain.check.report import counts_text, first_lines
from kernbench.explain.records import RecordedRun


def findings_section(records: RecordedRun) -> str:
    """The section as HTML: the numbers, a line for each of the first reports, and the command that
    prints all. Empty for a run without reports, and for one that did not finish, whose last rows
    are missing.
    """
    if records.run.error is not None:
        return ""
    findings = check_records(records)
    lines = first_lines(findings, records.name)
    if not lines:
        return ""
    text = "\n".join(f'<p class="note">{escape(each)}</p>' for each in lines)
    return f"<h2>{counts_text(findings)}</h2>\n{text}\n"
