"""`kernbench perf` from the command line, on real processes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernbench.explain.records import open_run
from runtime.core.run_tables import OPS
from tests.support.runs import ROOT, kernbench
from tests.support.topologies import variant_text

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

WORDS = "all_reduce -b 8 -e 2K -f 256 -n 2 -w 1 -c 1 -o sum -d half"


@pytest.fixture
def topology(tmp_path: Path) -> tuple[str, str]:
    path = tmp_path / "small.yaml"
    path.write_text(variant_text(sip__cube_mesh={"w": 1, "h": 1}))
    return "--topology", str(path)


def launch(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "launch.py"), *words]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=where, timeout=110, check=False
    )


def rows_and_digest(out: str) -> list[str]:
    return [line for line in out.splitlines() if re.match(r" +\d|digest", line)]


def test_every_number_of_processes_and_every_delay_give_one_table_and_one_digest(
    tmp_path: Path, topology
) -> None:
    ways = (["--procs", "1"], ["--procs", "2"], [], ["--jitter-ms", "1"])
    runs = [
        launch(tmp_path, *topology, "--sips", "3", *way, "perf", *WORDS.split()) for way in ways
    ]
    assert [run.returncode for run in runs] == [0] * 4
    first, *others = [rows_and_digest(run.stdout) for run in runs]
    assert [line.split()[0] for line in first] == ["8", "2048", "digest"]
    assert others == [first] * 3
    assert "# Out of bounds values : 0 OK\n" in runs[0].stdout
    assert (
        "# algorithm auto: recursive_doubling, a buffer on up to 8 PEs of cube 0 "
        "(nearest to the IO chiplet)\n" in runs[0].stdout
    )


def test_without_an_output_directory_no_file_is_left(tmp_path: Path, topology) -> None:
    done = launch(tmp_path, *topology, "perf", "sendrecv", "-b", "64", "--no-data")
    assert done.returncode == 0
    assert "# Out of bounds values : N/A, nothing was checked\n" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["small.yaml"]


def test_a_worker_elsewhere_makes_the_same_table_and_rows(tmp_path: Path, topology) -> None:
    (tmp_path / "engine.py").write_text(
        "from concurrent.futures import ProcessPoolExecutor\n"
        "def pool():\n"
        "    return ProcessPoolExecutor(1)\n"
    )
    words = (*topology, "--sips", "2", "perf", *WORDS.split(), "--json")
    here, there = (
        launch(tmp_path, *words, str(tmp_path / f"{on}.json"), "--on", on)
        for on in ("local", "engine:pool")
    )
    assert there.returncode == 0, there.stderr
    assert rows_and_digest(there.stdout) == rows_and_digest(here.stdout)
    assert (tmp_path / "engine:pool.json").read_bytes() == (tmp_path / "local.json").read_bytes()


def test_the_files_of_a_run_elsewhere_are_refused(tmp_path: Path, topology) -> None:
    words = (*topology, "perf", *WORDS.split(), "--on", "engine:pool", "--out", "run")
    done = launch(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "kernbench: error: perf: --out with --on: the records of a run stay where it is made\n"
    )


def test_measurements_are_verified_and_kept(tmp_path: Path, topology) -> None:
    words = [
        "perf",
        "reduce_scatter",
        "-b",
        "1K",
        "--verify-data",
        "--json",
        str(tmp_path / "rows.json"),
    ]
    run = kernbench(tmp_path / "run", *topology, *words)
    assert run.code == 0, run.err
    written = json.loads((tmp_path / "rows.json").read_text())
    assert written["digest"] == run.report["digest"]
    assert run.report["bench"] == "reduce_scatter_perf"
    assert run.report["verification"]["operations"] > 0
    assert [(row["size_bytes"], row["algorithm"]) for row in written["rows"]] == [(1024, "ring")]
    # As docs/runs.md states, the files of `--out` are those of any run.
    assert len(open_run(tmp_path / "run").table(OPS, 0)) > 0


def test_a_wrong_kernel_fails_the_run(tmp_path: Path, topology) -> None:
    ccl = (
        (ROOT / "ccl.yaml")
        .read_text()
        .replace("runtime.ccl.algorithms.ring\n", "tests.support.wrong_collectives\n")
    )
    (tmp_path / "wrong.yaml").write_text(ccl)
    words = ["perf", "all_reduce", "-b", "1K", "--algorithm", "ring"]
    run = kernbench(tmp_path / "run", *topology, "--ccl", str(tmp_path / "wrong.yaml"), *words)
    assert run.code == 1
    assert re.search(r"^# Out of bounds values : \d+ FAILED$", run.out, re.MULTILINE)
    assert run.report["passed"] is False


def test_a_refusal_is_one_line(tmp_path: Path) -> None:
    done = launch(tmp_path, "--sips", "4", "perf", "all_reduce", "-g", "8")
    assert done.stderr == (
        "kernbench: error: perf: -g/--ngpus has no meaning here: every rank is a SIP: "
        "--sips is their number\n"
    )
    assert done.returncode not in (0, 1)
