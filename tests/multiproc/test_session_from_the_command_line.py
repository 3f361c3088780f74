import json
import re
from pathlib import Path

import pytest

from kernbench.command.options import SimulationOptions
from kernbench.command.run_request import RunRequest
from kernbench.command.simulation import make_plan, program_of, run
from runtime.ccl.config import load_ccl
from runtime.core.config.config_file import default_file
from runtime.core.errors import ConfigError, UsageError
from tests.support.sessions import fake_launcher, plan

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]


def test_a_run_that_passes_prints_its_report_and_writes_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(plan(2), fake_launcher("normal"), tmp_path / "out") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert lines[0] == "# bench fake"
    assert lines[2] == "fake (ws=2): 32 OK"
    assert re.fullmatch(r"digest +[0-9a-f]{16}", lines[-2])
    account = json.loads((tmp_path / "out" / "run.json").read_text())
    assert account["passed"]
    assert account["digest"].startswith(lines[-2].split()[1])
    assert len((tmp_path / "out" / "oplog.jsonl").read_text().splitlines()) == 4


def test_a_rank_that_raises_prints_its_traceback_and_keeps_its_trace(tmp_path: Path, capsys):
    assert run(plan(2), fake_launcher("waits", "raises"), tmp_path / "out") == 1
    errors = capsys.readouterr().err.splitlines()
    assert errors[:2] == [
        "Traceback (most recent call last):",
        "kernbench: error: rank 1 raised ValueError at 5.000 ns: rank refuses",
    ]
    account = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (account["passed"], account["error"]) == (
        False,
        "rank 1 raised ValueError at 5.000 ns: rank refuses",
    )
    assert (tmp_path / "out" / "oplog.jsonl").read_text()


def test_a_process_that_exits_slowly_is_a_warning_beside_the_whole_result(tmp_path: Path, capsys):
    slow = fake_launcher("exits_slowly", "normal")
    assert run(plan(2, exit_s=1.0), slow, tmp_path / "out") == 0
    printed = capsys.readouterr()
    assert "fake (ws=2): 32 OK" in printed.out
    assert printed.out.splitlines()[-1] == f"files           {tmp_path / 'out'}"
    assert re.fullmatch(
        r"kernbench: warning: LP 0 \(rank 0, pid \d+\) has not exited 1\.\d s after .*\n",
        printed.err,
    )
    account = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (account["passed"], account["error"]) == (True, None)


def test_a_process_that_ends_badly_after_its_report_fails_a_run_that_prints_its_result(
    tmp_path: Path, capsys
):
    assert run(plan(2), fake_launcher("normal", "ends_badly"), tmp_path / "out") == 1
    printed = capsys.readouterr()
    assert "fake (ws=2): 32 OK" in printed.out
    assert re.search(r"^digest +[0-9a-f]{16}$", printed.out, re.MULTILINE)
    assert "exited with code 5 after the end of the run" in printed.err
    account = json.loads((tmp_path / "out" / "run.json").read_text())
    assert not account["passed"]
    assert account["ranks"][0]["ok"] == 16


@pytest.mark.parametrize("behaviour", ["refuses_a_flag", "refuses_a_key"])
def test_input_that_a_rank_refuses_is_the_error_of_the_user(behaviour: str, tmp_path: Path, capsys):
    with pytest.raises(UsageError, match="unknown dtype 'f99'"):
        run(plan(2), fake_launcher(behaviour), tmp_path / "out")
    assert capsys.readouterr().err == ""


def test_an_error_of_a_program_named_as_ours_has_its_rank_and_traceback(tmp_path: Path, capsys):
    launcher = fake_launcher("raises_a_config_error_of_its_own", "waits")
    assert run(plan(2), launcher, tmp_path / "out") == 1
    errors = capsys.readouterr().err
    assert errors.startswith("Traceback")
    assert "error: rank 0 raised ConfigError at 0.000 ns: unknown dtype 'f99'" in errors


def test_output_of_a_rank_without_end_of_line_has_its_own_lines(tmp_path: Path, capsys):
    assert run(plan(2), fake_launcher("prints", "normal"), tmp_path / "out") == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[2:5] == ["first", "without end", "fake (ws=2): 32 OK"]
    assert printed.err == "a warning\n"


def test_a_script_with_packed_processes_is_refused_with_the_reason(tmp_path: Path):
    script = tmp_path / "train.py"
    script.touch()
    program = program_of(RunRequest(SimulationOptions(), script=script, argv=("--x",)))
    assert (program.kind, program.path, program.argv) == ("script", str(script), ("--x",))
    with pytest.raises(UsageError, match="would share what is theirs alone: the modules"):
        make_plan(SimulationOptions(sips=4, procs=2), program)
    assert make_plan(SimulationOptions(sips=4, procs=4), program).procs == 4


def test_a_module_of_an_algorithm_beside_the_script_is_found_when_ccl_yaml_is_read(tmp_path: Path):
    script, ccl = tmp_path / "train.py", tmp_path / "mine.yaml"
    script.touch()
    ccl.write_text(default_file("ccl.yaml").read_text().replace("runtime.ccl.algorithms.", ""))
    options = SimulationOptions(sips=2, ccl=ccl)
    program = program_of(RunRequest(options, script=script))
    with pytest.raises(ConfigError, match=r"module: 'ring' cannot be imported: No module named"):
        make_plan(options, program)
    for name in load_ccl().file.algorithms:
        (tmp_path / f"{name}.py").write_text("from runtime.ccl.algorithms.ring import *\n")
    assert make_plan(options, program).config.ccl.resolve("tree").module == "tree"
