"""A bench or study outside the package runs in real processes, with its flags and one digest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.runs import ROOT, launched
from tests.support.topologies import variant_text

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

SOURCE = """
from kernbench import BenchOutcome, StudyOptions, bench, study, torch
from sizes import FACTOR

@bench("my-bench", "adds numbers on every SIP", count="elements")
def my_function(rank: int, *, count: int = 16, negate: bool = False) -> BenchOutcome:
    torch.ahbm.set_device(rank)
    torch.distributed.init_process_group("ahbm")
    tensor = torch.full((count,), float(-FACTOR if negate else FACTOR))
    torch.distributed.all_reduce(tensor)
    total = (tensor.numpy() == torch.distributed.get_world_size() * (-4 if negate else 4)).all()
    return BenchOutcome(f"sum of {count}", int(total), int(not total))

@study("my-study", "prints a line", line="text")
def my_study(options: StudyOptions, *, line: str = "nothing") -> bool:
    print(line, options.procs)
    return line != "wrong"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a file that has a bench, and a small topology."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "my_file.py").write_text(SOURCE)
    (folder / "sizes.py").write_text("FACTOR = 4\n")
    (folder / "small.yaml").write_text(variant_text(sip__cube_mesh={"w": 1, "h": 1}))
    return folder


def digest_and_pass_line(project: Path, *arguments: str) -> tuple[str, str]:
    run = launched(project / "run", "--topology", "small.yaml", "--sips", "2", *arguments)
    assert run.code == 0, run.err
    [line] = [line for line in run.out.splitlines() if "(ws=2)" in line]
    return run.report["digest"], line


def test_a_bench_in_a_file_gives_one_digest_in_one_process_and_in_two(project: Path) -> None:
    bench = ("--bench", "my_file.py:my-bench", "--count", "40", "--negate")
    results = [digest_and_pass_line(project, *bench, "--procs", procs) for procs in ("1", "2")]
    assert results[0] == results[1]
    assert results[0][1] == "sum of 40 (ws=2): 2 OK"


def test_a_bench_in_a_module_of_the_working_directory_gives_the_same_result(project: Path) -> None:
    by_module = digest_and_pass_line(project, "--bench", "my_file:my_function")
    assert by_module == digest_and_pass_line(project, "--bench", "my_file.py:my_function")


def test_a_study_in_a_file_runs_in_the_process_of_the_command(project: Path) -> None:
    study = ("--bench", "my_file.py:my-study", "--procs", "3")
    run = launched(project / "run", *study, "--line", "text")
    assert (run.code, run.out, run.err) == (0, "text 3\n", "")
    assert launched(project / "run", *study, "--line", "wrong").code == 1


def test_an_entry_point_adds_its_bench_to_the_list_and_runs(project: Path) -> None:
    metadata = project / "my_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[kernbench.benches]\nmine = my_file\n")

    def launch(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(ROOT / "launch.py"), *arguments],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": str(project)},
            cwd=project.parent,
            timeout=100,
            check=False,
        )

    listed = launch("--list")
    assert "  my-bench                 adds numbers on every SIP\n" in listed.stdout
    small = ("--topology", str(project / "small.yaml"), "--out", str(project / "run"))
    done = launch(*small, "--sips", "2", "--bench", "my-bench")
    assert done.returncode == 0, done.stderr
    assert "sum of 16 (ws=2): 2 OK\n" in done.stdout
    (metadata / "entry_points.txt").write_text("[kernbench.benches]\nmine = no_such_module\n")
    assert launch("--list").stderr == (
        "kernbench: error: entry point 'mine' of my-package cannot be loaded: "
        "ModuleNotFoundError: No module named 'no_such_module'\n"
    )
