"""Workers of torchrun join the run that their environment names."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torch.conftest import PROGRAMS, Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(300)]


def torchrun(run: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return subprocess.run(
        [*command, "--nproc-per-node", "2", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, "KERNBENCH_RUN": run},
    )


def test_the_workers_are_the_processes_of_the_run(run: Runs, tmp_path: Path):
    program = str(PROGRAMS / "workers.py")
    done = torchrun(f"run --out {tmp_path}", program, "3")
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^= rank (\d) of 2: (\S+) ahbm (\d+)$", done.stdout, re.MULTILINE)
    assert {each[:2] for each in lines} == {("0", "6.0"), ("1", "6.0")}
    # A process of a run that torchrun has started keeps its process id.
    started = dict(re.findall(r"^before rank (\d): (\d+)$", done.stdout, re.MULTILINE))
    assert dict(each[::2] for each in lines)["1"] == started["1"]
    # The workers share a pipe; the lines of one never come between parts of a line of another.
    printed = re.findall(r"^= line (\d+) of rank (\d)$", done.stdout, re.MULTILINE)
    assert sorted((rank, int(line)) for line, rank in printed) == [
        (rank, line) for rank in "01" for line in range(5000)
    ]
    [digest] = re.findall(r"^digest +(\w+)", done.stdout, re.MULTILINE)
    assert digest in run("workers.py", sips=2, program_arguments=["3"])


def test_a_rank_that_fails_ends_all_workers_with_its_traceback(tmp_path: Path):
    done = torchrun(f"run --out {tmp_path}", str(PROGRAMS / "workers.py"), "no number")
    assert done.returncode == 1
    assert re.search(r"^kernbench: error: rank \d raised ValueError", done.stderr, re.MULTILINE)
    assert (tmp_path / "run.json").exists()


def test_without_a_run_the_backend_is_an_error_that_names_the_command():
    done = torchrun("", str(PROGRAMS / "workers.py"), "3")
    assert done.returncode == 1
    assert "no rank of a simulation is running here: start the script with" in done.stderr
    assert "KERNBENCH_RUN=run in the environment" in done.stderr
