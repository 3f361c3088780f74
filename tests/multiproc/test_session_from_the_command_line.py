import json
import re
import tempfile
from pathlib import Path

import pytest

from coordinator import cli
from coordinator.options import Invocation
from tests.support.sessions import fake_launcher, plan

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]


@pytest.fixture(autouse=True)
def _private_temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert not list(tmp_path.glob("kernbench-*"))


def test_a_run_that_passes_prints_its_story_and_writes_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.run(plan(2), fake_launcher("normal"), tmp_path / "out") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert lines[0] == "# bench fake"
    assert lines[2] == "fake (ws=2): 32 OK"
    assert re.fullmatch(r"digest +[0-9a-f]{16}", lines[-2])
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["passed"]
    assert run["digest"].startswith(lines[-2].split()[1])
    assert len((tmp_path / "out" / "oplog.jsonl").read_text().splitlines()) == 4


def test_a_rank_that_raises_prints_its_traceback_and_keeps_what_was_traced(tmp_path: Path, capsys):
    assert cli.run(plan(2), fake_launcher("waits", "raises"), tmp_path / "out") == 1
    errors = capsys.readouterr().err.splitlines()
    assert errors[:2] == ["Traceback (most recent call last):", "ValueError: rank says no"]
    assert errors[2] == "kernbench: error: rank 1 raised ValueError at 5.000 ns: rank says no"
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (run["passed"], run["error"]) == (False, "rank 1 raised ValueError at 5.000 ns: rank says no")
    assert (tmp_path / "out" / "oplog.jsonl").read_text()


def test_a_script_with_packed_processes_is_refused_with_the_reason(tmp_path: Path):
    script = tmp_path / "train.py"
    script.touch()
    with pytest.raises(cli.UsageError, match="would share the state of its modules"):
        cli.make_plan(Invocation(script=script, sips=4, procs=2), ())
    program = cli.make_plan(Invocation(script=script, sips=4, procs=4, argv=("--x",)), ()).program
    assert (program.kind, program.path, program.argv) == ("script", str(script), ("--x",))
