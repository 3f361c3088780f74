"""`why` executes nothing of a run directory, unless it is the caller's own run and unchanged."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pytest

from tests.support.run_tables import change_report
from tests.support.runs import ROOT, Run, kernbench

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]
STRANGER = 54_321
NOTE = "kernbench: note: "
WHAT_IF = ("--what-if", "hbm.pc_bw_gbs=x2")
PLANTED = "open({marker!r}, 'w').close()\n"
"""Statement that must not be executed: it leaves a file."""
PROGRAM = """\
import sys
import numpy as np
from kernbench import torch
import wave
import model
try:
    import plugin
except ImportError:
    pass
assert sys.argv[1:] == ["--lr", "1"]
assert open("weights.txt").read() == "1024"
torch.from_numpy(np.ones(model.SIZE, np.float32))
torch.ahbm.synchronize()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    folder.mkdir(mode=0o700)
    (folder / "train.py").write_text(PROGRAM)
    (folder / "model.py").write_text("SIZE = 1024\n")
    (folder / "weights.txt").write_text("1024")
    return folder


@pytest.fixture
def run(project: Path) -> Run:
    run = kernbench(project / "run", "--sips", "1", "train.py", "--lr", "1")
    assert run.code == 0, run.err
    return run


def why(run: Path, *options: str, cwd: Path | None = None) -> Run:
    """`kernbench why RUN options...` in another directory than that of the run."""
    command = [sys.executable, str(ROOT / "launch.py"), "why", str(run), *options]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=cwd or "/", timeout=100, check=False
    )
    return Run(done.returncode, done.stdout, done.stderr, run)


def test_an_own_program_is_shown_with_its_files_and_runs_in_its_folder(run: Run, project: Path):
    done = why(run.directory, *WHAT_IF)
    assert done.code == 0, done.err
    assert done.err.splitlines() == [
        f"{NOTE}the program of the run: kernbench --sips 1 --no-trace {project}/train.py --lr 1",
        f"{NOTE}files of the user in it: {project}/train.py, {project}/model.py",
        f"{NOTE}simulating the run with hbm.pc_bw_gbs=64, 1 of 1",
    ]


def planted(project: Path, *files: str) -> Path:
    """Code that leaves a file where it is executed; returns that file."""
    marker = project / "executed"
    for name in files:
        (project / name).write_text(PLANTED.format(marker=str(marker)))
    return marker


CASES: dict[str, tuple[Callable[[Path], object], str]] = {
    "another program": (
        lambda project: change_report(project / "run", program=f"{project}/evil.py"),
        "the run has no record of the code of",
    ),
    "a changed script": (
        lambda project: (project / "evil.py").replace(project / "train.py"),
        "train.py has changed since the run",
    ),
    "a changed module": (
        lambda project: (project / "evil.py").replace(project / "model.py"),
        "model.py has changed since the run",
    ),
    "an added module": (
        lambda project: (project / "evil.py").replace(project / "plugin.py"),
        "module 'plugin'",
    ),
    "an added module that hides one of Python": (
        lambda project: (project / "evil.py").replace(project / "wave.py"),
        "module 'wave'",
    ),
    "a module of an implementation": (
        lambda project: (project / "run" / "topology.yaml").write_text(
            (project / "run" / "topology.yaml").read_text() + "impl: {hbm_ctrl: evil:Evil}\n"
        ),
        "topology.yaml is damaged",
    ),
    "a module of an algorithm": (
        lambda project: (project / "run" / "ccl.yaml").write_text(
            (project / "run" / "ccl.yaml").read_text() + "x: {module: evil}\n"
        ),
        "ccl.yaml is damaged",
    ),
    "a bench": (
        lambda project: change_report(project / "run", kind="bench", program="evil:run"),
        "the run has no record of the code of evil:run",
    ),
    "a module": (
        lambda project: change_report(project / "run", kind="module", program="evil"),
        "the run has no record of the code of evil",
    ),
}


@pytest.mark.parametrize(("plant", "problem"), CASES.values(), ids=CASES)
def test_changed_code_is_not_executed(
    run: Run, project: Path, plant: Callable[[Path], object], problem: str
):
    marker = planted(project, "evil.py")
    plant(project)
    done = why(run.directory, *WHAT_IF, cwd=project)
    assert done.code == 2
    assert problem in done.err.splitlines()[-1]
    assert not marker.exists()


def test_an_unpacked_directory_of_another_user_is_not_executed(run: Run, project: Path):
    copy = copytree(run.directory, project / "unpacked")
    done = why(copy, "--check")
    [line] = done.err.splitlines()
    assert (done.code, "is a copy of the directory" in line) == (2, True)
    done = why(copy, *WHAT_IF, "--run-program")
    assert done.code == 0
    assert "executed because of --run-program" in done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
@pytest.mark.parametrize("name", ["run", "train.py", "model.py"])
def test_a_directory_or_a_file_of_another_user_is_not_executed(run: Run, project: Path, name: str):
    os.chown(project / name, STRANGER, STRANGER)
    done = why(run.directory, *WHAT_IF)
    [line] = done.err.splitlines()
    assert done.code == 2
    assert f"{project / name} belongs to user {STRANGER}, not to you: a simulation would" in line


def test_a_report_sets_no_environment_and_no_flags_of_python(run: Run, project: Path):
    marker = planted(project, "sitecustomize.py", "evil.py")
    change_report(
        run.directory,
        environment={"PYTHONPATH": str(project), "PYTHONSTARTUP": str(project / "evil.py")},
        python=["-i", str(project / "evil.py")],
        executable=str(project / "evil.py"),
    )
    assert why(run.directory, *WHAT_IF).code == 0
    assert not marker.exists()


@pytest.mark.parametrize("command", ["why", "trace", "web"])
def test_modules_in_a_run_directory_are_not_imported(run: Run, command: str):
    names = ("click", "msgspec", "pyarrow", "json", "signal", "numpy", "yaml", "sitecustomize")
    marker = planted(run.directory, *(f"{name}.py" for name in names))
    done = subprocess.run(
        [sys.executable, "-m", "kernbench", command, "."],
        capture_output=True,
        text=True,
        cwd=run.directory,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not marker.exists()
