"""`kernbench why`: where the time of a run went; two runs compared; what if a number changed."""

from collections.abc import Sequence
from pathlib import Path

import click

from kernbench.cli.options import CONTEXT_SETTINGS
from runtime.core.errors import UsageError
from runtime.core.output import print_lines


@click.command(name="why", context_settings=dict(CONTEXT_SETTINGS))
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path), metavar="RUN [RUN]")
@click.option("--json", "as_json", is_flag=True, help="For programs: JSON, times in picoseconds.")
def why_command(runs: Sequence[Path], *, as_json: bool) -> int:
    """Explain where the time of a run went, from the records in its directory.

    Two runs are compared. docs/performance-debugging.md describes every number.
    """
    if not 1 <= len(runs) <= 2:
        raise UsageError(f"why: give the directory of a run, or of two runs, not {len(runs)}")
    # Imported here: a help text needs no arrays.
    from kernbench.run_records import open_run
    from kernbench.why.explanation import explain

    explained = [explain(open_run(run)) for run in runs]
    if len(explained) > 1:
        from kernbench.why.compare import compare, comparison_json, comparison_lines

        comparison = compare(explained[0], explained[1])
        _print_json(comparison_json(comparison)) if as_json else print_lines(
            comparison_lines(comparison)
        )
        return 0
    if as_json:
        from kernbench.why.json_form import explanation_json

        _print_json(explanation_json(explained[0]))
        return 0
    from kernbench.why.report import explanation_lines

    print_lines(explanation_lines(explained[0]))
    return 0


def _print_json(content: object) -> None:
    import msgspec

    print_lines([msgspec.json.encode(content).decode()])
