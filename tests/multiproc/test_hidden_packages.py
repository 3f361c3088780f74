"""A module of the user with the name of one of our packages is named, with ours, in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.runs import ROOT
from tests.support.topologies import variant_text

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

SCRIPT = "from kernbench import torch\nprint('rank', torch.distributed.is_initialized())\n"
SPAWNS = """
from {package} import torch

def work(rank):
    pass

if __name__ == "__main__":
    torch.multiprocessing.spawn(work, nprocs=1)
    print("done")
"""


def python(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"KERNBENCH_TOPOLOGY": str(where / "small.yaml")},
        cwd=where,
        timeout=100,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small.yaml").write_text(
        variant_text(sip__cube_mesh={"w": 1, "h": 1}, system__sips__count=1)
    )
    return tmp_path


def hides(file: Path, package: str) -> str:
    return f"{file} hides kernbench's package {package} ({ROOT}/{package}/__init__.py): rename it"


@pytest.mark.parametrize("package", ["runtime", "coordinator", "kernbench"])
def test_beside_a_script_that_the_command_runs(folder: Path, package: str) -> None:
    (folder / f"{package}.py").touch()
    (folder / "script.py").write_text(SCRIPT)
    done = python(folder, str(ROOT / "launch.py"), "--topology", "small.yaml", "script.py")
    assert done.stderr == f"kernbench: error: {hides(folder / f'{package}.py', package)}\n"
    assert done.returncode == 2


@pytest.mark.parametrize("package", ["runtime", "coordinator", "sip_node"])
def test_beside_a_program_that_spawns_ranks(folder: Path, package: str) -> None:
    (folder / package).mkdir()
    hiding = folder / package / "__init__.py"
    hiding.touch()
    (folder / "program.py").write_text(SPAWNS.format(package="kernbench"))
    done = python(folder, "program.py")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(hides(hiding, package))


@pytest.mark.parametrize("package", ["kernbench", "runtime"])
def test_a_folder_without_init_file_hides_nothing(folder: Path, package: str) -> None:
    (folder / "coordinator").mkdir()
    (folder / "program.py").write_text(SPAWNS.format(package=package))
    done = python(folder, "program.py")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_in_the_working_directory_of_the_command_it_hides_nothing(folder: Path) -> None:
    for package in ("runtime", "coordinator", "sip_node"):
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text("raise ValueError('imported')\n")
    small = ("--topology", "small.yaml", "--out", "out", "--min-bytes", "256", "--max-bytes", "256")
    done = python(folder, str(ROOT / "launch.py"), *small)
    assert done.returncode == 0, done.stderr


def test_in_the_working_directory_of_python_m_it_hides_nothing(folder: Path) -> None:
    """Files in a directory of another user's runs are not imported."""
    for package in ("runtime", "coordinator", "simpy"):
        (folder / f"{package}.py").write_text("raise ValueError('imported')\n")
    done = python(folder, "-m", "kernbench", "--list")
    assert (done.returncode, done.stderr) == (0, "")


def test_in_the_working_directory_of_an_lp_joined_by_hand_it_hides_nothing(folder: Path) -> None:
    (folder / "runtime.py").write_text("raise ValueError('imported')\n")
    done = python(folder, "-m", "sip_node", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: python -m sip_node")


def test_beside_a_file_with_a_bench(folder: Path) -> None:
    (folder / "bench").mkdir()
    (folder / "bench" / "sip_node.py").touch()
    (folder / "bench" / "mine.py").touch()
    done = python(folder, str(ROOT / "launch.py"), "--bench", "bench/mine.py:mine")
    hiding = hides(folder / "bench" / "sip_node.py", "sip_node")
    assert done.stderr == f"kernbench: error: --bench: {hiding}\n"
