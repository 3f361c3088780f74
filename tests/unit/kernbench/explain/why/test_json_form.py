"""The keys of the JSON of an explanation, which programs rely on."""

from pathlib import Path

from kernbench.explain.records import open_run
from kernbench.explain.why.compare import compare
from kernbench.explain.why.explanation import explain
from kernbench.explain.why.json_form import comparison_json, explanation_json, what_if_json
from kernbench.explain.why.what_if import NumberChange, Prediction
from tests.support.hand_made_runs import a_slot_and_its_credit, one_kernel
from tests.support.run_tables import write_run


def test_the_form_has_the_numbers_of_the_explanation_in_picoseconds(tmp_path: Path):
    form = explanation_json(explain(open_run(write_run(tmp_path / "run", [one_kernel()], 1000))))
    assert (form["version"], form["total_ps"]) == (2, 1000)
    assert form["ranks"] == [
        {
            "rank": 0,
            "compute_ps": 50,
            "memory_ps": 650,
            "communication_ps": 0,
            "launch_ps": 300,
            "idle_ps": 0,
        }
    ]
    assert sum(each["length_ps"] for each in form["path"]["by_line"]) == 1000
    assert form["path"]["pieces"][6] == {
        "begin_ps": 210,
        "end_ps": 298,
        "kind": "memory",
        "component": "cube2.pe1.pe_dma",
        "what": "load",
        "cause": "",
        "sip": 0,
        "cube": 2,
        "pe": 1,
        "line": "k.py:1",
        "op": 0,
        "step": 1,
        "command": -1,
    }
    assert form["kernels"] == [
        {"name": "k", "launches": 1, "pes": 1, "time_ps": 700, "longest_ps": 700}
    ]
    assert (form["bound"]["is"], form["bound"]["path_ps"]) == ("path", 848)


def test_predictions_are_those_of_a_run_in_picoseconds(tmp_path: Path):
    records = open_run(write_run(tmp_path / "run", [one_kernel()], 1000))
    prediction = Prediction(NumberChange("ucie.bw_gbs", 128, 256), -5, -3, -4)
    assert what_if_json(records, [prediction]) == {
        "version": 2,
        "run": str(tmp_path / "run"),
        "total_ps": 1000,
        "what_if": [
            {
                "key": "ucie.bw_gbs",
                "before": 128,
                "after": 256,
                "predicted_ps": -5,
                "absorbed_ps": -3,
                "simulated_ps": -4,
            }
        ],
    }


def test_a_comparison_has_both_times_of_every_name(tmp_path: Path):
    one = explain(open_run(write_run(tmp_path / "one", [one_kernel()], 1000)))
    other = explain(open_run(write_run(tmp_path / "other", a_slot_and_its_credit(), 1040)))
    form = comparison_json(compare(one, other))
    assert (form["version"], form["before_ps"], form["after_ps"]) == (2, 1000, 1040)
    assert (form["before"], form["after"]) == (one.records.name, other.records.name)
    for name in ("kinds", "lines", "components"):
        assert sum(each["before_ps"] for each in form[name]) == 1000
        assert sum(each["after_ps"] for each in form[name]) == 1040
    assert form["parts"][0] == {"name": "memory stall", "before_ps": 650, "after_ps": 0}
