"""The table of `make chaos`, and its place in a page."""

from collections.abc import Sequence
from pathlib import Path

from tests.chaos.outcome import Outcome

BEGIN, END = "<!-- chaos: begin -->", "<!-- chaos: end -->"


def table(outcomes: Sequence[Outcome]) -> str:
    """The rows by kind, and their sum, as Markdown."""
    kinds = list(dict.fromkeys(each.kind for each in outcomes))
    rows = [_row(kind, [each for each in outcomes if each.kind == kind]) for kind in kinds]
    heading = ["| kind | cases | as expected | failures |", "| --- | --- | --- | --- |"]
    lines = [*heading, *rows, _row("**all**", outcomes)]
    skipped = {each.case: each.skipped for each in outcomes if each.skipped}
    if skipped:
        lines += ["", *(f"Not run: {case}: {reason}." for case, reason in skipped.items())]
    return "\n".join(lines)


def write_table(page: Path, outcomes: Sequence[Outcome]) -> None:
    """Replace the text between the markers of `page`."""
    content = page.read_text("utf-8")
    before, begin, rest = content.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page} has no {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{table(outcomes)}\n\n{END}{after}", "utf-8")


def _row(kind: str, outcomes: Sequence[Outcome]) -> str:
    ran = [each for each in outcomes if not each.skipped]
    failed = sum(bool(each.problems) for each in ran)
    return f"| {kind} | {len(ran)} | {len(ran) - failed} | {failed} |"
