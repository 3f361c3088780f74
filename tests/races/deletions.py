"""`python -m tests.races.deletions [NAME ...]`: is a missing wait, barrier or message reported?

Each call of the kernels, collectives and benches that ship is deleted, one at a time, and each send
in front of a statement that writes is moved behind it; small programs that run it are checked. Most
mutants fail: they wait forever, or break a rule of the language. Those that end are reported; or
the call is needless, with a reason that uses no clock of the check; or they are missed. A NAME
selects the calls whose file or kind contains it. The exit code is 1 if less than 90 % of the
mutants that end, and that are not needless, are reported.
"""

import os
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from io import StringIO
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import process_time
from typing import NamedTuple

import click

from kernbench.explain.check.findings import check_records
from kernbench.explain.records import RunRecords
from runtime.core.run_tables import CALLS, OPS
from tests.races.checked_simulations import checked_simulations
from tests.races.covering_programs import Program, benches, collectives
from tests.races.deleted_calls import CallSite, deleted, sites_of
from tests.races.needless_waits import reasons_at
from tests.support.runs import ROOT

FOLDERS = (
    "runtime/ccl",
    "runtime/device/kernels",
    "kernbench/benches",
    "kernbench/studies/llama70b_layer",
    "examples",
)
TARGET = 0.9
MOST_PROGRAMS = 3
"""Programs that are tried for a call, those of the fewest calls first; for one that may be needless
all that run it are tried.
"""
_RANKS = ("missed", "failed", "needless", "not run")
"""Verdicts without a report; the first one counts."""
SLACK, SLACK_S = 5, 300
_NOT_WRITTEN = "nothing writes the tensor after it is sent"
PACES = "simulated times differ without it"
REASONS: Mapping[tuple[str, str], str] = {
    ("examples/pytorch_pipeline.py", "send.wait()"): _NOT_WRITTEN,
    ("examples/pytorch_point_to_point.py", "send.wait()"): _NOT_WRITTEN,
}
"""Reasons why waits of a rank program are needless, by file and text."""


class ProgramRun(NamedTuple):
    """The end of a program: `word` is `clean`, `reported` or `failed`; the number of its calls and
    their lines; a hash of the times of its operations; why the call of a site is needless.
    """

    word: str
    detail: str
    lines: frozenset[str]
    calls: int
    times: str
    seconds: float
    reasons: frozenset[str] = frozenset()


def run_of(
    program: Program, site: CallSite | None, timeout_s: float, *, deletes: bool = True
) -> ProgramRun:
    """A program in a process of its own, without the call of a site, if one is given."""
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(program, site, theirs, deletes))
    process.start()
    theirs.close()
    try:
        if ours.poll(timeout_s):
            return ours.recv()
    except EOFError:
        raise SystemExit(f"{site}: its process has failed") from None
    finally:
        process.kill()
        process.join()
        ours.close()
    return ProgramRun("failed", "it did not end", frozenset(), 0, "", timeout_s)


def _run(program: Program, site: CallSite | None, answer: Connection, deletes: bool) -> None:
    began_s, reports, lines, reasons = process_time(), list[str](), set[str](), set[str]()
    word, detail, calls, times = "clean", "", 0, sha256()

    def check(records: RunRecords) -> None:
        nonlocal calls
        if site is not None and not deletes:
            reasons.update(reasons_at(records, site))
            return
        found = check_records(records, is_strict=True)
        calls += found.calls
        reports.extend(f"race: {each.first.line}, {each.second.line}" for each in found.races)
        reports.extend(f"undefined: {each.use.line}" for each in found.undefined)
        for sip in records.sips:
            for column in ("start_ps", "end_ps"):
                times.update(records.table(OPS, sip)[column].tobytes())
            texts = records.table(CALLS, sip).text("line")
            lines.update(texts.values[code] for code in set(map(int, texts.codes)))

    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(StringIO()))
        stack.enter_context(redirect_stderr(StringIO()))
        if site is not None and deletes:
            stack.enter_context(deleted(ROOT, site))
        stack.enter_context(checked_simulations(check))
        try:
            program()
        except BaseException as error:  # noqa: BLE001 - any error is an end of the mutant
            word, detail = "failed", f"{type(error).__name__}: {error}".splitlines()[0]
    if reports:
        word, detail = "reported", reports[0]
    taken_s = process_time() - began_s
    answer.send(
        ProgramRun(
            word, detail, frozenset(lines), calls, times.hexdigest(), taken_s, frozenset(reasons)
        )
    )
    answer.close()
    os._exit(0)


class Verdict(NamedTuple):
    """The end of a call that is deleted: `reported`, `needless`, `missed`, `failed`, or `not run`;
    and where, or why.
    """

    site: CallSite
    word: str
    detail: str


def programs() -> dict[str, Program]:
    """All programs by name."""
    own = {**collectives(), **benches()}
    if find_spec("torch") is not None:
        # Imported once, by the parent of all processes.
        from tests.races.pytorch_programs import of_pytorch

        own |= of_pytorch()
    return own


def covered(own: Mapping[str, Program], jobs: int) -> dict[str, ProgramRun]:
    """The runs of all programs without a mutant; raises `SystemExit` for one with a report."""
    with ThreadPoolExecutor(jobs) as pool:
        run = partial(run_of, site=None, timeout_s=600)
        runs = dict(zip(own, pool.map(run, own.values()), strict=True))
    for name, run in runs.items():
        if run.word != "clean":
            raise SystemExit(f"{name} is {run.word} without a mutant: {run.detail}")
    return runs


def verdict_of(
    site: CallSite, own: Mapping[str, Program], runs: Mapping[str, ProgramRun]
) -> Verdict:
    """The verdict of the first programs that run the call, until one is reported."""
    # Else the records have other calls of its function.
    places = site.places if site.has_row else site.places_around
    names = [name for name, run in runs.items() if places & run.lines]
    # By their calls, and not by times: verdicts are those of every machine.
    names.sort(key=lambda name: runs[name].calls)
    best, reasons = Verdict(site, "not run", "no program here runs it"), set[str]()
    for number, name in enumerate(names):
        if number >= MOST_PROGRAMS and best.word != "needless":
            break
        run = run_of(own[name], site, SLACK * runs[name].seconds + SLACK_S)
        word, detail = run.word, f"{name}: {run.detail}"
        if word == "reported":
            return Verdict(site, word, detail)
        if word == "clean":
            own_reasons = _reasons_of(name, site, own[name])
            reasons |= own_reasons
            if run.times != runs[name].times:
                reasons.add(PACES)
            word, detail = ("needless", "") if own_reasons else ("missed", name)
        if _RANKS.index(word) < _RANKS.index(best.word):
            best = Verdict(site, word, detail)
    if best.word == "needless":
        best = best._replace(detail="; ".join(sorted(reasons)))
    return best


def _reasons_of(name: str, site: CallSite, program: Program) -> frozenset[str]:
    """The reasons why a program does not need a call; none if it does in one of its runs."""
    known = REASONS.get((site.file, site.text))
    if known is not None:
        return frozenset((known,))
    same = run_of(program, site, 600, deletes=False)
    if same.word != "clean":
        raise SystemExit(f"{name} is {same.word} without a mutant: {same.detail}")
    return frozenset() if "" in same.reasons else same.reasons


@click.command()
@click.argument("names", nargs=-1)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="At a time.")
def main(names: tuple[str, ...], jobs: int) -> None:
    """Delete all calls, or those whose file or kind contains a NAME."""
    sites = [
        site
        for site in sites_of(ROOT, FOLDERS)
        if not names or any(name in site.place or name == site.kind for name in names)
    ]
    own = programs()
    runs = covered(own, jobs)
    mutants = [site for site in sites if site.has_mutant]
    verdicts = list[Verdict]()
    with ThreadPoolExecutor(jobs) as pool:
        for verdict in pool.map(partial(verdict_of, own=own, runs=runs), mutants):
            verdicts.append(verdict)
            site = verdict.site
            click.echo(f"{verdict.word:<9} {site.place}  {site.text[:60]}  {verdict.detail[:160]}")
    click.echo(f"\n{len(sites) - len(mutants)} calls have no mutant: only they give their values")
    raise SystemExit(_report(verdicts))


def _report(verdicts: list[Verdict]) -> int:
    kinds = sorted({each.site.kind for each in verdicts})
    words = ("reported", "needless", "missed", "failed", "not run")
    click.echo(f"\n{'call':<14}" + "".join(f"{word:>10}" for word in words))
    for kind in (*kinds, "all"):
        counts = Counter(each.word for each in verdicts if kind in (each.site.kind, "all"))
        click.echo(f"{kind:<14}" + "".join(f"{counts[word]:>10}" for word in words))
    for word in ("missed", "needless"):
        for each in verdicts:
            if each.word == word:
                click.echo(f"\n{word}: {each.site.place}  {each.site.text}\n  {each.detail}")
    counts = Counter(each.word for each in verdicts)
    reported = counts["reported"]
    needed = reported + counts["missed"]
    ended = needed + counts["needless"]
    click.echo(
        f"\nreported: {reported} of {ended} mutants that end, {_share(reported, ended):.1%}; "
        f"{reported} of {needed} without a call that is needless, {_share(reported, needed):.1%}"
    )
    return 0 if _share(reported, needed) >= TARGET else 1


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


if __name__ == "__main__":
    main()
