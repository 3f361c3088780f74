"""Sweeps over real processes: their rows are those of single runs, their files always the same."""

import csv
import json
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from kernbench.cli.main import main
from tests.support.runs import kernbench
from tests.support.topologies import variant_text

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.usefixtures("warm")]

FILES = ("sweep.csv", "sweep.parquet", "sweep.json", "sweep.rows.jsonl")
SMALL = ("--arg", "--min-bytes=256", "--arg", "--max-bytes=512", "--arg", "--factor=2")
GRID = (
    *("ccl-allreduce", "--set", "ucie.bw_gbs=64,256", "--set", "ucie.overhead_ns=4,16"),
    *SMALL,
)
FAILING = """
import argparse
from kernbench import torch

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int)
size = parser.parse_args().size
torch.distributed.init_process_group("ahbm")
rank = torch.distributed.get_rank()
print("elements", size)
if size == 2 and rank == 1:
    raise ValueError("two elements\\nare too many")
if size == 3 and rank == 0:
    torch.distributed.recv(torch.ones(size), 1)
x = torch.ones(size)
if size != 3:
    torch.distributed.all_reduce(x)
"""


KILLED = """
import os, signal, sys
from pathlib import Path

times = int(sys.argv[1].partition("=")[2])
deaths = Path(f"deaths{times}")
count = len(deaths.read_text()) if deaths.exists() else 0
if count < times:
    deaths.write_text("x" * (count + 1))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@dataclass(frozen=True)
class Sweep:
    code: int
    out: str
    err: str
    directory: Path

    def bytes_of(self, name: str) -> bytes:
        return (self.directory / name).read_bytes()

    @property
    def rows(self) -> list[dict[str, str]]:
        return list(csv.DictReader(self.bytes_of("sweep.csv").decode().splitlines()))


def sweep(
    directory: Path, capfd: pytest.CaptureFixture[str], *arguments: str, procs: int = 2
) -> Sweep:
    capfd.readouterr()
    options = ("--out", directory.name, "--procs", str(procs), "--plot", "none")
    with chdir(directory.parent):
        code = main(["sweep", *arguments, *options])
    printed = capfd.readouterr()
    return Sweep(code, printed.out, printed.err, directory)


@pytest.mark.nightly
def test_the_files_of_a_grid_are_the_same_for_every_number_of_workers(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    first = sweep(tmp_path / "two", capfd, *GRID)
    second = sweep(tmp_path / "one", capfd, *GRID, procs=1)
    assert (first.code, second.code) == (0, 0)
    assert first.out == second.out.replace("one/", "two/")
    for name in FILES:
        assert first.bytes_of(name) == second.bytes_of(name), name
    points = [(row["ucie.bw_gbs"], row["ucie.overhead_ns"]) for row in first.rows]
    assert points == [(bw, ns) for bw in ("64", "256") for ns in ("4", "16")]
    assert len({row["digest"] for row in first.rows}) == 4
    assert_both_tables_agree(first)
    assert_is_as_a_single_run(first, tmp_path)


def assert_both_tables_agree(made: Sweep) -> None:
    table: dict[str, list[Any]] = parquet.read_table(made.directory / "sweep.parquet").to_pydict()
    assert list(table) == list(made.rows[0])
    for name, cells in table.items():
        texts = ["" if cell is None else str(cell) for cell in cells]
        assert texts == [row[name] for row in made.rows], name


def assert_is_as_a_single_run(made: Sweep, folder: Path) -> None:
    """The last point has the hash, the time, the digest, the shares and the table of its run."""
    topology = folder / "changed.yaml"
    topology.write_text(variant_text(ucie__bw_gbs=256, ucie__overhead_ns=16))
    flags = [flag for each in SMALL if each != "--arg" for flag in each.split("=")]
    run = kernbench(folder / "run", "--topology", str(topology), *flags)
    row = made.rows[-1]
    assert row["config_hash"] == run.report["config_hash"]
    assert row["digest"] == run.report["digest"]
    assert float(row["time_ns"]) == run.report["sim_time_ns"]
    lines = run.out.splitlines()
    spent = next(line for line in lines if line.startswith("time spent"))
    titles = ("compute", "memory stall", "exposed communication", "launch", "idle")
    for title in titles:
        share = float(row[f"{title.replace(' ', '_')}_percent"])
        assert f"{title} {share:.1f} %" in spent
    (cells,) = [line.split() for line in lines if line.split()[:1] == ["512"]]
    assert f"{float(row['row_time_ns@512']) / 1000:.3f}" == cells[4]
    assert f"{float(row['algbw_gbs@512']):.3f}" == cells[5]


def test_a_point_that_fails_is_a_fault_with_its_traceback_on_the_standard_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    (tmp_path / "failing.py").write_text(FAILING)
    made = sweep(tmp_path / "out", capfd, "failing.py", "--arg", "--size=1,2,3,4")
    assert made.code == 1
    assert [bool(row["digest"]) for row in made.rows] == [True, False, False, True]
    raised, deadlock = (made.rows[at]["fault"] for at in (1, 2))
    assert raised.startswith("rank 1 raised ValueError at ")
    assert raised.endswith(": two elements")
    assert deadlock.startswith("IpcqDeadlock at ")
    for text in ("2 FAULTS of 4 points", f"--size=2: {raised}", f"--size=3: {deadlock}"):
        assert text in made.out.splitlines()
    assert '--size=2:     raise ValueError("two elements' in made.err
    assert "--size=2: and are too many" not in made.err
    assert "--size=2: are too many" in made.err
    # What ranks print is no part of the report.
    assert "elements 4" in made.err
    assert "elements 4" not in made.out


@pytest.mark.nightly
def test_a_process_that_is_killed_once_costs_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    (tmp_path / "killed.py").write_text(KILLED)
    made = sweep(tmp_path / "out", capfd, "killed.py", "--sips", "1", "--arg", "--times=1,3")
    assert made.code == 1
    once, thrice = made.rows
    assert once["digest"]
    assert thrice["fault"] == (
        "the run was stopped: its process has died 3 times (was killed by SIGKILL)"
    )
    assert "pid" not in made.bytes_of("sweep.rows.jsonl").decode()


def test_a_directory_is_in_use_by_one_sweep(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    from kernbench.sweep.files import sweep_directory

    with sweep_directory(tmp_path / "out", "x"):
        refused = sweep(tmp_path / "out", capfd, *GRID)
    assert refused.code == 2
    assert refused.err.startswith("kernbench: error: --out: out is in use")
    assert refused.err.count("\n") == 1


def test_an_interrupted_sweep_goes_on_and_ends_with_the_same_files(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    arguments = ("ccl-allreduce", "--sips", "1,2,3", *SMALL)
    whole = sweep(tmp_path / "whole", capfd, *arguments)
    partly = tmp_path / "partly"
    partly.mkdir()
    rows = whole.bytes_of("sweep.rows.jsonl").splitlines(keepends=True)
    # Killed while it wrote the second row.
    (partly / "sweep.rows.jsonl").write_bytes(rows[0] + rows[1][:20])
    resumed = sweep(partly, capfd, *arguments)
    assert "1 of 3 rows are in partly/sweep.rows.jsonl already" in resumed.err
    assert "--sips=1" not in resumed.err
    for name in FILES:
        assert resumed.bytes_of(name) == whole.bytes_of(name), name


def test_rows_of_another_machine_are_not_resumed(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    arguments = ("ccl-allreduce", "--sips", "1,2", *SMALL)
    assert sweep(tmp_path / "out", capfd, *arguments).code == 0
    other = (*arguments, "--set", "ucie.bw_gbs=64", "--resume")
    refused = sweep(tmp_path / "out", capfd, *other)
    assert refused.code == 2
    assert "of another configuration" in refused.err
    assert refused.err.count("\n") == 1
    # The files of the first sweep are still there.
    assert [row["--sips"] for row in sweep_rows(tmp_path / "out")] == ["1", "2"]


def sweep_rows(directory: Path) -> list[dict[str, str]]:
    return Sweep(0, "", "", directory).rows


def test_a_wrong_metric_keeps_the_rows(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    made = sweep(
        tmp_path / "out", capfd, "ccl-allreduce", "--sips", "1,2", *SMALL, "--metric", "algbw"
    )
    assert made.code == 2
    problem = made.err.splitlines()[-1]
    assert problem.startswith("kernbench: error: sweep: metric 'algbw' is no column of the sweep;")
    assert problem.endswith("; kernbench sweep --from out draws another figure")
    assert len(made.rows) == 2
    assert json.loads(made.bytes_of("sweep.json"))["metric"] == "algbw"
