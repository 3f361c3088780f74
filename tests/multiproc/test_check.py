"""`check` of real runs: one verdict for every number of processes, and exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from kernbench.cli.main import main
from kernbench.explain.check.checked_runs import checked_runs
from tests.support.runs import called

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.slow,
    pytest.mark.multiproc,
    pytest.mark.usefixtures("warm"),
]

SOURCE = """
from kernbench import BenchOutcome, DPPolicy, bench, tl, torch

TWO = DPPolicy(pe="row_wise", num_cubes=1, num_pes=2)

def store_and_load(x, y):
    if tl.program_id(0) == 0:
        tl.store(x, tl.full(16, 1.0, tl.float32))
        tl.send("global_E", tl.load(x, 1))
    else:
        tl.recv("global_W", 1, tl.float32)
        tl.store(y, tl.load(x, 16))

def receive(x):
    if tl.program_id(0) == 0:
        tl.recv("global_W", 1, tl.float32)

def pass_on(x):
    if tl.program_id(0) == 0:
        tl.send("global_E", tl.load(x, 1))

def answer(x):
    if tl.program_id(0) == 1:
        tl.send("global_E", tl.load(x, 1))

@bench("chain", "sends a token through three SIPs", right="orders the answer")
def chain(rank: int, *, right: bool = False) -> BenchOutcome:
    torch.distributed.init_process_group("ahbm")
    x, y = (torch.zeros(32, dp=TWO) for _ in range(2))
    if rank == 0:
        torch.launch("store_and_load", store_and_load, x, y)
    elif rank == 1:
        torch.launch("receive", receive, x)
        torch.launch("pass_on", pass_on, x)
    else:
        for kernel in (receive, answer) if right else (answer, receive):
            torch.launch(kernel.__name__, kernel, x)
    torch.ahbm.synchronize()
    return BenchOutcome("chain", 1, 0)
"""


def test_a_race_across_sips_has_one_verdict_for_every_number_of_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "chains.py").write_text(SOURCE)

    def verdict(procs: int, *twin: str) -> tuple[int, Any]:
        out = str(tmp_path / f"run{procs}")
        words = ("--sips", "3", "--procs", str(procs), "--out", out, "--bench", "chains.py:chain")
        run = called(tmp_path, *words, *twin)
        assert run.code == 0, run.err
        code = main(["check", out, "--json"])
        content = json.loads(capsys.readouterr().out)
        del content["run"]
        return code, content

    verdicts = [verdict(procs) for procs in (1, 2, 3)]
    assert verdicts[0] == verdicts[1] == verdicts[2]
    code, content = verdicts[0]
    assert (code, len(content["races"])) == (1, 1)
    assert verdict(2, "--right")[0] == 0


def test_a_variable_of_the_environment_checks_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_chains.py").write_text(SOURCE)
    words = ("--sips", "3", "--procs", "1", "--out", "run", "--bench", "own_chains.py:chain")
    assert called(tmp_path, *words).code == 0
    monkeypatch.setenv("KERNBENCH_CHECK_RACES", "1")
    with checked_runs(is_strict=False) as reports:
        wrong = called(tmp_path, *words)
    assert wrong.code == 1
    assert "1 race, 0 undefined values" in wrong.out
    assert len(reports) == 1
    run, page = tmp_path / "run", tmp_path / "page.html"
    # The commands that explain the run show the first line of the report.
    assert called(tmp_path, "why", str(run)).out.count("  race: element") == 1
    assert called(tmp_path, "web", str(run), "--out", str(page)).code == 0
    assert f'<p class="note">all of them: kernbench check {run}</p>' in page.read_text()
    assert called(tmp_path, *words, "--right").code == 0
