"""The matrix product study on real chips."""

from pathlib import Path

import pytest

from kernbench.cli.main import main
from kernbench.studies import results_file
from kernbench.studies.milestone_1h_gemm.rows import GemmResults

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
