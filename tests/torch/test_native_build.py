"""The C++ part of the device is built before the processes of a run count their time."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torch.conftest import ROOT

pytestmark = [pytest.mark.nightly, pytest.mark.multiproc, pytest.mark.timeout(600)]

BUILD = "kernbench: compiling the C++ part of the device 'ahbm'"
PARTS = ("coordinator", "kernbench", "runtime", "sip_node")
FILES = ("launch.py", "pyproject.toml", "topology.yaml", "ccl.yaml")


def test_a_build_before_the_run_takes_no_time_from_its_limit(tmp_path: Path):
    checkout = tmp_path / "checkout"
    for part in PARTS:
        shutil.copytree(ROOT / part, checkout / part)
    for name in FILES:
        shutil.copy(ROOT / name, checkout / name)
    program = tmp_path / "program.py"
    program.write_text("import torch\nprint(torch.ones(3, device='ahbm').sum().item())\n", "utf-8")
    command = [sys.executable, str(checkout / "launch.py"), "--sips", "2", "--timeout", "20"]
    for announced in (True, False):
        done = subprocess.run(
            [*command, "--no-trace", "--out", str(tmp_path / "run"), str(program)],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout.count("3.0\n") == 2
        assert (BUILD in done.stderr) == announced
