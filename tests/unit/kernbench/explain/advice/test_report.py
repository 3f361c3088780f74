"""The report on a part of a run, as text and as JSON."""

from kernbench.explain.advice.advise import advise
from kernbench.explain.advice.json_form import scope_json
from kernbench.explain.advice.report import scope_lines
from kernbench.explain.advice.scope import RunSelection
from kernbench.explain.advice.source_text import SourceText
from tests.support.bottlenecks import CASES
from tests.support.simulated_runs import recorded

DOUBLE_WORK = CASES[0]


def test_the_report_begins_with_the_loss_its_line_and_what_to_change():
    records = recorded(lambda rank: DOUBLE_WORK.program(rank, True), data=False)
    advice = advise(records, RunSelection(kernel=DOUBLE_WORK.kernel))
    lines = list(scope_lines(advice, records.total_ps, SourceText(records)))
    assert lines[0].startswith("kernel scaled, 1 launch: ")
    start = lines.index("losses (ns)")
    assert "uneven work: 7 PEs 1,989, sip0.cube0.pe5 3,977 ns" in lines[start + 1]
    assert "2.00 times the bytes of memory" in lines[start + 2]
    assert "tests/support/bottlenecks.py:" in lines[start + 3]
    change = lines.index("change this (ns): saves is an estimate, of each change by itself")
    assert lines[change + 2].endswith("program  move work of sip0.cube0.pe5 to the other PEs")
    # The PEs of the launch: one row for those alike.
    assert sum(line.startswith("  7 PEs ") for line in lines) == 1
    assert lines[-1].startswith("bound: ")


def test_the_json_has_the_same_numbers():
    records = recorded(lambda rank: DOUBLE_WORK.program(rank, True), data=False)
    advice = advise(records, RunSelection(kernel=DOUBLE_WORK.kernel))
    form = scope_json(advice, SourceText(records))
    assert form["losses"][0]["rule"] == "balance"
    assert form["losses"][0]["cost_ps"] == advice.findings[0].cost_ps
    assert form["change"][0]["in"] == "program"
    assert [row["pes"] for row in form["kernels"][0]["pes"]] == [1, 7]
    assert sum(share["length_ps"] for share in form["path"]["by_kind"]) == form["total_ps"]
