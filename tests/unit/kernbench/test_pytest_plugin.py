"""`pytest --kernbench-check`, in a pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
QUIET = ("-p", "no:cacheprovider", "-p", "no:randomly")
SUITE = """
import sys
from kernbench import DPPolicy, simulate, tl, torch

def increment(x, y):
    tl.store(y, tl.load(x, 8) + 1)

def of(make):
    def program(rank):
        one = DPPolicy(num_cubes=1, num_pes=1)
        torch.launch("increment", increment, make(8, dp=one), torch.zeros(8, dp=one))
        torch.ahbm.synchronize()
    return program

def test_right():
    assert simulate(of(torch.zeros), 1).rows == {}

def test_undefined():
    simulate(of(torch.empty), 1)
"""
LIGHT = """
import sys

def test_light():
    assert not [name for name in sys.modules if name.startswith(("kernbench.explain", "runtime"))]
"""


def pytest_of(folder: Path, source: str, *flags: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_suite.py").write_text(source)
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *QUIET, *flags, "test_suite.py"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_a_test_whose_simulation_uses_an_undefined_value_fails_with_the_report(
    tmp_path: Path,
) -> None:
    done = pytest_of(tmp_path, SUITE, "--kernbench-check")
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "undefined: element 0 of tensor t1[8], made at test_suite.py:11" in done.stdout
    assert "FAILED test_suite.py::test_undefined" in done.stdout


@pytest.mark.parametrize("source", [SUITE, LIGHT], ids=["checked", "loaded"])
def test_nothing_is_checked_or_loaded_without_the_flag(tmp_path: Path, source: str) -> None:
    done = pytest_of(tmp_path, source)
    assert done.returncode == 0, done.stdout + done.stderr
