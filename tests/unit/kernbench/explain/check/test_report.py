"""The text and the JSON of findings."""

from kernbench.explain.check.findings import Findings, FoundPlace, FoundRace, FoundUndefined
from kernbench.explain.check.report import finding_lines, findings_json, first_lines

LOAD = FoundPlace(
    operation="load",
    line="k.py:3",
    sip=1,
    cube=2,
    pe=3,
    kernel="halo",
    launch="main.py:6",
    program="(4,)",
    stream=0,
    begin_ps=1_000,
    end_ps=2_500,
)
COPY = LOAD._replace(
    operation="copy", cube=-1, pe=-1, kernel="", launch="", program="", line="main.py:9"
)
RACE = FoundRace("t1[64]", "main.py:4", 5, COPY, LOAD, "the begin", "an event", False, 3)
AT = (
    "load at k.py:3: SIP 1 cube 2 PE 3, kernel halo program (4,) launched at main.py:6, stream 0, "
    "1.000 to 2.500 ns"
)
USE = FoundUndefined("a value of tl.empty", "k.py:1", 2, None, LOAD, False, 1)


def test_a_report_has_both_accesses_and_the_last_line_counts() -> None:
    lines = finding_lines(Findings((RACE,), (USE,), (), 10), "runs/one")
    assert lines == [
        "race: element 5 of tensor t1[64], made at main.py:4",
        "  first        copy at main.py:9: SIP 1, stream 0, 1.000 to 2.500 ns",
        f"  second       {AT}",
        "  in common    the begin",
        "  remedy       an event",
        "  count        3 pairs of accesses at these lines",
        "",
        "undefined: element 2 of a value of tl.empty, made at k.py:1",
        f"  used         {AT}",
        "",
        "check  runs/one: 10 calls, 1 race, 1 undefined value",
    ]


def test_a_strict_race_and_a_note_have_names_of_their_own() -> None:
    strict, note = RACE._replace(is_strict=True), USE._replace(is_note=True)
    findings = Findings((strict,), (), (note,), 10)
    text = "\n".join(finding_lines(findings, "run"))
    assert "missing order of streams: element 5" in text
    assert "note: perhaps undefined: element 2" in text
    assert findings.reports == 1


def test_a_summary_has_the_first_line_of_each_report_and_the_command() -> None:
    assert first_lines(Findings((RACE,) * 5, (USE,), (), 10), "runs/one") == [
        *["race: element 5 of tensor t1[64], made at main.py:4"] * 4,
        "all of them: kernbench check runs/one",
    ]
    assert first_lines(Findings((), (), (USE,), 10), "runs/one") == []


def test_the_json_has_all_fields_with_times_in_picoseconds() -> None:
    content = findings_json(Findings((RACE,), (USE,), (), 10))
    assert content["races"][0]["second"]["begin_ps"] == 1_000
    assert (content["races"][0]["pairs"], content["undefined"][0]["read"]) == (3, None)
    assert (content["version"], content["calls"], content["notes"]) == (1, 10, [])
