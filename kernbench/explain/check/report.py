"""The findings of a check as lines of text, and as JSON."""

from collections.abc import Iterator
from typing import Any

from kernbench.explain.check.findings import Findings, FoundPlace, FoundRace, FoundUndefined
from runtime.core.run_tables import NONE
from runtime.core.simtime import PS_PER_NS

_SHOWN = 4
"""Reports of which `why` and the page of a run have a line."""
VERSION = 1
"""Increases when a key of the JSON changes its meaning or disappears."""


def finding_lines(findings: Findings, name: str) -> list[str]:
    """The reports, and a last line with their number."""
    lines = list[str]()
    for race in findings.races:
        lines += [*_race_lines(race), ""]
    for undefined in (*findings.undefined, *findings.notes):
        lines += [*_undefined_lines(undefined), ""]
    notes = f", {len(findings.notes)} notes" if findings.notes else ""
    lines.append(f"check  {name}: {findings.calls:,} calls, {counts_text(findings)}{notes}")
    return lines


def counts_text(findings: Findings) -> str:
    """The numbers of races and undefined values."""
    races, uses = len(findings.races), len(findings.undefined)
    return (
        f"{races} {'race' if races == 1 else 'races'}, {uses} undefined "
        f"{'value' if uses == 1 else 'values'}"
    )


def first_lines(findings: Findings, name: str) -> list[str]:
    """The first reports, a line for each, and the command that prints all; none without reports."""
    if not findings.reports:
        return []
    lines = [next(iter(_race_lines(each))) for each in findings.races]
    lines += [next(iter(_undefined_lines(each))) for each in findings.undefined]
    return [*lines[:_SHOWN], f"all of them: kernbench check {name}"]


def _race_lines(race: FoundRace) -> Iterator[str]:
    made = f", made at {race.made}" if race.made else ""
    kind = "missing order of streams" if race.is_strict else "race"
    yield f"{kind}: element {race.element} of tensor {race.tensor}{made}"
    yield from _table(race.first, race.second)
    yield f"  in common    {race.common}"
    yield f"  remedy       {race.remedy}"
    yield from _further(race.pairs, "pairs of accesses")


def _undefined_lines(use: FoundUndefined) -> Iterator[str]:
    kind = "note: perhaps undefined" if use.is_note else "undefined"
    yield f"{kind}: element {use.element} of {_noun(use)}, made at {use.made}"
    if use.read is not None:
        yield f"  read first   {_place(use.read)}"
    yield f"  used         {_place(use.use)}"
    if use.is_note:
        yield "  why a note   the mask of tl.where is not computed: it may select defined elements"
    yield from _further(use.uses, "uses")


def _noun(use: FoundUndefined) -> str:
    return use.tensor if use.tensor.startswith("a ") else f"tensor {use.tensor}"


def _table(first: FoundPlace, second: FoundPlace) -> Iterator[str]:
    yield f"  first        {_place(first)}"
    yield f"  second       {_place(second)}"


def _further(count: int, noun: str) -> Iterator[str]:
    if count > 1:
        yield f"  count        {count:,} {noun} at these lines"


def _place(place: FoundPlace) -> str:
    at = f"SIP {place.sip}"
    if place.cube != NONE:
        at += f" cube {place.cube} PE {place.pe}, kernel {place.kernel}"
    if place.program:
        at += f" program {place.program}"
    if place.launch:
        at += f" launched at {place.launch}"
    if place.stream != NONE:
        at += f", stream {place.stream}"
    if place.end_ps != NONE:
        at += f", {place.begin_ps / PS_PER_NS:,.3f} to {place.end_ps / PS_PER_NS:,.3f} ns"
    return f"{place.operation} at {place.line}: {at}"


def findings_json(findings: Findings) -> dict[str, Any]:
    """The findings as an object of JSON. Times are integer picoseconds."""
    return {
        "version": VERSION,
        "calls": findings.calls,
        "races": [_plain(each) for each in findings.races],
        "undefined": [_plain(each) for each in findings.undefined],
        "notes": [_plain(each) for each in findings.notes],
    }


def _plain(finding: FoundRace | FoundUndefined) -> dict[str, Any]:
    return {
        name: value._asdict() if isinstance(value, FoundPlace) else value
        for name, value in finding._asdict().items()
    }
