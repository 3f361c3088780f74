"""The matrix product study on real chips, and its worker processes."""

import subprocess
import sys
from multiprocessing import active_children
from pathlib import Path

import pytest

from kernbench.cli.main import main
from kernbench.studies import results_file
from kernbench.studies.milestone_1h_gemm.rows import GemmResults
from kernbench.studies.pool import completed
from runtime.core.errors import ConfigError, RunAborted
from runtime.core.wallclock import sleep_s
from runtime.model.topology import load_topology
from tests.support.runs import ROOT
from tests.support.sessions import wait_until_gone

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]


@pytest.mark.nightly
def test_the_two_smallest_products_are_right_and_not_faster_than_their_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    for procs in ("1", "2"):
        arguments = ["--shapes", "16x32x16,32x32x32", "--procs", procs, "--out", procs]
        assert main(["--bench", "milestone-1h-gemm", *arguments]) == 0
        progress = capsys.readouterr().err.splitlines()
        assert [line.split()[0] for line in progress] == [f"{number}/6" for number in range(1, 7)]
    results = results_file.read(tmp_path / "1" / "gemm_sweep.json", GemmResults, 1)
    assert len(results.rows) == 6
    for row in results.rows:
        assert row.kernel_ps >= row.theory.bound_ps > 0
        assert row.error <= 1
        assert row.under_tile
        # One step, one output tile, and a record for each operand, streamed or loaded.
        assert (
            row.steps,
            row.records.gemm,
            row.records.store,
            row.records.dma_in,
            row.records.dma_out,
        ) == (1, 1, 1, 2, 1)
        # m k n of 32 x 64 x 32.
        assert row.padding_utilisation in (1 / 8, 1 / 2)
        assert row.product_utilisation <= row.padding_utilisation
    assert (tmp_path / "1" / "gemm_sweep.json").read_bytes() == (
        tmp_path / "2" / "gemm_sweep.json"
    ).read_bytes()


def test_points_are_paired_with_their_results_in_any_order_of_completion():
    assert dict(completed(abs, [-3, 2, -1], 2, 0)) == {-3: 3, 2: 2, -1: 1}
    assert active_children() == []


def test_an_exception_of_a_point_stops_all_workers():
    with pytest.raises(ConfigError, match="no such file"):
        list(completed(load_topology, [ROOT / "topology.yaml", ROOT / "missing.yaml"], 2, 0))
    assert active_children() == []


def test_points_that_do_not_complete_in_time_are_named_and_stopped():
    with pytest.raises(RunAborted, match=r"no result for 3 s \(--timeout\); not done: .*60"):
        list(completed(sleep_s, [0, 60], 2, 3))
    assert active_children() == []


def test_no_worker_outlives_a_study_that_is_killed():
    program = (
        "from multiprocessing import active_children\n"
        "from kernbench.studies.pool import completed\n"
        "from runtime.core.wallclock import sleep_s\n"
        "results = completed(sleep_s, [0, 60, 61], 2, 0)\n"
        "next(results)\n"
        "print(*(worker.pid for worker in active_children()), flush=True)\n"
        "next(results)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as study:
        assert study.stdout is not None
        workers = [int(pid) for pid in study.stdout.readline().split()]
        study.kill()
    assert len(workers) == 2
    assert all(wait_until_gone(pid, 5) for pid in workers)
