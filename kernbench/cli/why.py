"""`kernbench why`: where the time of a run went; two runs compared; what if a number changed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from kernbench.cli.recorded import consistent, opened
from kernbench.command.exit_codes import print_note
from kernbench.command.options import CONTEXT_SETTINGS
from runtime.core.errors import UsageError
from runtime.core.output import print_lines

if TYPE_CHECKING:
    from kernbench.explain.advice.advise import ScopeAdvice
    from kernbench.explain.advice.scope import RunSelection
    from kernbench.explain.records import RecordedRun
    from kernbench.explain.why.explanation import Explanation
    from kernbench.explain.why.what_if import Prediction


class _Selected(TypedDict):
    """The options that select a part of a run."""

    kernel: str | None
    launch: int | None
    time: str | None
    rank: int | None


@click.command(name="why", context_settings=dict(CONTEXT_SETTINGS))
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path), metavar="RUN [RUN]")
@click.option(
    "--what-if",
    "what_ifs",
    multiple=True,
    metavar="KEY=VALUE",
    help="The time with another number in the topology file, `ucie.bw_gbs=256` or "
    "`ucie.bw_gbs=x2`: predicted from the critical path, then simulated; may be given several "
    "times.",
)
@click.option("--kernel", metavar="NAME", help="Only the launches of this kernel.")
@click.option("--launch", type=click.IntRange(0), metavar="N", help="Only launch N, from 0 on.")
@click.option("--time", metavar="A..B", help="Only the interval from A to B, in nanoseconds.")
@click.option("--rank", type=click.IntRange(0), metavar="R", help="Only this rank.")
@click.option("--check", is_flag=True, help="Also simulate the predictions that the report makes.")
@click.option(
    "--run-program",
    is_flag=True,
    help="Simulate also if the program of the run may have changed, or may be another user's.",
)
@click.option("--json", "as_json", is_flag=True, help="For programs: JSON, times in picoseconds.")
def why_command(
    runs: Sequence[Path],
    what_ifs: Sequence[str],
    *,
    check: bool,
    run_program: bool,
    as_json: bool,
    **selected: Unpack[_Selected],
) -> int:
    """Explain where the time of a run went, from the records in its directory, and what to change.

    Losses and advice are those of the measured part of the program, from its first launch to the
    end of its last one, or of the part that --kernel, --launch, --time and --rank select. Two runs
    are compared. docs/performance-debugging.md describes every number. A simulation executes the
    program that the run names: what it is and its files are shown before.
    """
    if not 1 <= len(runs) <= 2:
        raise UsageError(f"why: give the directory of a run, or of two runs, not {len(runs)}")
    if len(runs) > 1 and (what_ifs or check):
        option = "--what-if" if what_ifs else "--check"
        raise UsageError(f"why: {option} belongs to one run, and two are compared")
    if run_program and not (what_ifs or check):
        raise UsageError("why: --run-program belongs to --check or --what-if, which simulate")
    if (what_ifs or len(runs) > 1) and any(each is not None for each in selected.values()):
        raise UsageError(
            "why: --kernel, --launch, --time and --rank belong to the report of one run"
        )
    records = [opened(run) for run in runs]
    with consistent(*runs):
        if len(records) > 1:
            _compare(*records, as_json=as_json)
        elif what_ifs:
            _what_if(records[0], what_ifs, run_program=run_program, as_json=as_json)
        else:
            _explain(
                records[0],
                _selection(**selected),
                check=check,
                run_program=run_program,
                as_json=as_json,
            )
    return 0


def _selection(
    kernel: str | None, launch: int | None, time: str | None, rank: int | None
) -> "RunSelection":
    from kernbench.explain.advice.scope import RunSelection, parse_time

    interval = None if time is None else parse_time(time)
    return RunSelection(kernel=kernel, launch=launch, time_ps=interval, rank=rank)


def _compare(before: "RecordedRun", after: "RecordedRun", *, as_json: bool) -> None:
    from kernbench.explain.why.compare import compare, comparison_lines
    from kernbench.explain.why.explanation import explain
    from kernbench.explain.why.json_form import comparison_json

    comparison = compare(explain(before), explain(after))
    if as_json:
        _print_json(comparison_json(comparison))
    else:
        print_lines(comparison_lines(comparison))


def _what_if(
    records: "RecordedRun", what_ifs: Sequence[str], *, run_program: bool, as_json: bool
) -> None:
    from kernbench.explain.why.explanation import require_finished
    from kernbench.explain.why.json_form import what_if_json
    from kernbench.explain.why.path import critical_path
    from kernbench.explain.why.path_jitter import with_jitter
    from kernbench.explain.why.report import prediction_lines
    from kernbench.explain.why.what_if import Predictor, parse_change

    require_finished(records)
    changes = [parse_change(records, text) for text in what_ifs]
    predictor = Predictor(records, with_jitter(records, critical_path(records)))
    predictions = [predictor.predict(change) for change in changes]
    checked = _checked(records, predictions, run_program=run_program)
    if as_json:
        _print_json(what_if_json(records, checked))
    else:
        print_lines(prediction_lines(checked, records.total_ps, absorbed=True))


def _explain(
    records: "RecordedRun",
    selection: "RunSelection",
    *,
    check: bool,
    run_program: bool,
    as_json: bool,
) -> None:
    from kernbench.explain.advice.advise import advise
    from kernbench.explain.advice.report import scope_lines
    from kernbench.explain.advice.source_text import SourceText
    from kernbench.explain.why.cursor import RunIndex
    from kernbench.explain.why.explanation import explain
    from kernbench.explain.why.report import explanation_lines, heading_lines, prediction_lines
    from kernbench.explain.why.what_if import Predictor

    index = RunIndex.of(records)
    is_whole = selection.is_all and records.run.error is None
    explanation = explain(records, index) if is_whole else None
    advice = advise(records, selection, index)
    predictions = list["Prediction"]()
    if explanation is not None:
        predictions = [*Predictor(records, explanation.path).classes()]
    if check:
        advice, predictions = _checked_advice(records, advice, predictions, run_program=run_program)
    source = SourceText(records)
    if as_json:
        _print_json(_json(records, explanation, advice, predictions))
        return
    print_lines(heading_lines(records))
    if is_whole:
        print_lines(_findings(records))
    print_lines(scope_lines(advice, records.total_ps, source))
    if explanation is not None:
        print_lines(["", "the whole run", ""])
        print_lines(explanation_lines(explanation))
        print_lines(prediction_lines(predictions, explanation.total_ps))


def _findings(records: "RecordedRun") -> list[str]:
    """The first races and undefined values of a run, if there are any."""
    from kernbench.explain.check.findings import check_records
    from kernbench.explain.check.report import counts_text, first_lines

    findings = check_records(records)
    lines = [f"  {each}" for each in first_lines(findings, records.name)]
    return [counts_text(findings), *lines, ""] if lines else []


def _json(
    records: "RecordedRun",
    explanation: "Explanation | None",
    advice: "ScopeAdvice",
    predictions: "Sequence[Prediction]",
) -> Mapping[str, object]:
    from kernbench.explain.advice.json_form import scope_json
    from kernbench.explain.advice.source_text import SourceText
    from kernbench.explain.why.json_form import (
        explanation_json,
        predictions_json,
        run_json,
    )

    whole = run_json(records) if explanation is None else explanation_json(explanation)
    scope = {"scope": scope_json(advice, SourceText(records))}
    if explanation is None:
        return whole | scope
    return whole | scope | {"what_if": predictions_json(predictions)}


def _checked_advice(
    records: "RecordedRun",
    advice: "ScopeAdvice",
    predictions: "Sequence[Prediction]",
    *,
    run_program: bool,
) -> "tuple[ScopeAdvice, list[Prediction]]":
    """The advice and the predictions with the simulated time of each machine, simulated once."""
    from kernbench.explain.why.what_if import Prediction

    changes = [each.change for each in predictions]
    for each in advice.advice:
        if each.change is not None and each.change not in changes:
            changes.append(each.change)
    checked = _checked(
        records, [Prediction(change, 0, 0) for change in changes], run_program=run_program
    )
    simulated = {each.change: each.simulated_ps for each in checked}
    return (
        replace(
            advice,
            advice=[
                replace(each, simulated_ps=simulated.get(each.change)) if each.change else each
                for each in advice.advice
            ],
        ),
        [replace(each, simulated_ps=simulated[each.change]) for each in predictions],
    )


def _checked(
    records: "RecordedRun", predictions: "Sequence[Prediction]", *, run_program: bool
) -> "list[Prediction]":
    from kernbench.cli.rerun import repetition
    from kernbench.explain.why.what_if import changed_text

    program = repetition(records, run_program=run_program)
    checked = list["Prediction"]()
    for number, each in enumerate(predictions, start=1):
        # Each simulation takes as long as the run.
        print_note(f"simulating the run with {each.change}, {number} of {len(predictions)}")
        changed = changed_text(records, each.change)
        time_ps = program.simulated_ps(changed, str(each.change))
        checked.append(replace(each, simulated_ps=time_ps - records.total_ps))
    return checked


def _print_json(content: object) -> None:
    import msgspec

    print_lines([msgspec.json.encode(content).decode()])
