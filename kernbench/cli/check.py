"""`kernbench check`: races and undefined values of a run that has ended."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernbench.cli.recorded import consistent, opened
from kernbench.command.exit_codes import ExitCode
from kernbench.command.options import CONTEXT_SETTINGS
from runtime.core.errors import UsageError
from runtime.core.output import print_lines
from runtime.core.run_tables import CALLS, COMMANDS

if TYPE_CHECKING:
    from kernbench.explain.records import RecordedRun


@click.command(name="check", context_settings=dict(CONTEXT_SETTINGS))
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN ...")
@click.option(
    "--strict",
    is_flag=True,
    help="Commands are ordered by streams, events and the host alone, as in CUDA: not by the "
    "tensors or PEs that they share.",
)
@click.option("--json", "as_json", is_flag=True, help="For programs: JSON, times in picoseconds.")
def check_command(runs: tuple[Path, ...], *, strict: bool, as_json: bool) -> int:
    """Find races and undefined values in the records of RUN, the directory of a run.

    A race is found whether or not it changed a number in this run: the check covers all orders that
    the same operations could have had. Exit code 1 if there is a report. docs/check.md describes
    the rules.
    """
    # Imported here: a help text needs no arrays.
    from kernbench.explain.check.findings import check_records
    from kernbench.explain.check.report import finding_lines, findings_json

    count, objects = 0, list[object]()
    for run in runs:
        records = opened(run)
        if records.run.error is not None:
            raise UsageError(
                f"{run} did not finish ({records.run.error.splitlines()[0]}): rows are missing, "
                "and a check of the others would report what they order"
            )
        _require_calls(records)
        with consistent(run):
            findings = check_records(records, is_strict=strict)
        count += findings.reports
        if as_json:
            objects.append({"run": str(run)} | findings_json(findings))
        else:
            print_lines(finding_lines(findings, str(run)))
    if as_json:
        _print_json(objects[0] if len(objects) == 1 else objects)
    return ExitCode.FAILED if count else ExitCode.PASSED


def _require_calls(records: "RecordedRun") -> None:
    """Raise `UsageError` for the records of a version that had commands, but no table of calls."""
    for sip in records.sips:
        if len(records.table(COMMANDS, sip)) and not len(records.table(CALLS, sip)):
            raise UsageError(
                f"{records.name} has no table of calls: it was recorded by a version of kernbench "
                f"which had none ({records.run.versions.get('kernbench', 'unknown')}); run it "
                "again with this version"
            )


def _print_json(content: object) -> None:
    import msgspec

    print_lines([msgspec.json.encode(content).decode()])
