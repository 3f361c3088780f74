"""The keys of the JSON of an explanation, which programs rely on."""

from pathlib import Path

from kernbench.run_records import open_run
from kernbench.why.explanation import explain
from kernbench.why.json_form import explanation_json
from tests.support.hand_made_runs import one_kernel
from tests.support.run_tables import write_run


def test_the_form_has_the_numbers_of_the_explanation_in_picoseconds(tmp_path: Path):
    form = explanation_json(explain(open_run(write_run(tmp_path / "run", [one_kernel()], 1000))))
    assert (form["version"], form["total_ps"]) == (1, 1000)
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
    assert (form["bound"]["is"], form["bound"]["path_ps"]) == ("path", 848)
