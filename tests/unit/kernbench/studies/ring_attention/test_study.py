"""The study of ring attention: its sizes, its file, its faults and its options."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernbench.cli.main import main
from kernbench.studies import results_file
from kernbench.studies.catalogue import RingFlags
from kernbench.studies.ring_attention.rows import Division, RingBounds, RingResults, RingRow, sweep
from kernbench.studies.ring_attention.study import RingAttentionStudy
from runtime.core.errors import UsageError

STUDY = RingAttentionStudy(RingFlags(tokens="1024,2048", sips_list="2,8"))


def row(size: tuple[Division, int, int], **changes: Any) -> RingRow:
    division, tokens, sips = size
    right = RingRow(
        division=division,
        sips=sips,
        tokens=tokens,
        layer_ps=1000,
        kernels_ps=(900,) * sips,
        exposed_ps=100,
        bounds=RingBounds(gemm_ps=100.0, vector_ps=300.0, link_ps=200.0),
        error=1e-4 if tokens == 1024 else None,
    )
    return msgspec.structs.replace(right, **changes)


ROWS = tuple(map(row, sweep(STUDY.sizes)))
FULL = RingResults(
    version=1, sizes=STUDY.sizes, topology="topology.yaml", topology_hash="", rows=ROWS
)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"error": 1.1e-3}, "wrong by 0.0011, 0.001 are allowed"),
        ({"error": float("nan")}, "wrong by nan"),
        ({"layer_ps": 299}, "299 ps are less than the bound of 300 ps"),
    ],
)
def test_a_failed_check_is_a_fault(changes: dict[str, Any], fault: str):
    [found] = row(next(sweep(STUDY.sizes)), **changes).faults
    assert found.startswith(fault)
    assert STUDY.verdict(FULL) == [STUDY.passed(FULL)]


def test_a_file_that_lacks_a_row_is_refused(tmp_path: Path):
    path = tmp_path / "ring_attention.json"
    results_file.write(path, FULL)
    assert STUDY.read(path) == FULL
    results_file.write(path, msgspec.structs.replace(FULL, rows=ROWS[1:]))
    with pytest.raises(UsageError, match="a row for each of its sizes"):
        STUDY.read(path)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--tokens", "2048,1024"], "--tokens '2048,1024': expected rising numbers"),
        (["--tokens", "1000"], "--tokens 1000: 2 SIPs have 2 chunks each, of whole blocks of 64"),
        (["--sips-list", "1"], "--sips-list '1': expected rising numbers from 2 to 8"),
        (["--sips-list", "9"], "--sips-list '9': expected rising numbers from 2 to 8"),
        (["--tokens", str(10**9)], "--tokens '1000000000': expected rising numbers from 1 to"),
        (["--sips-list", "two"], "--sips-list 'two': expected rising numbers"),
        (["--heads", "0"], "--heads 0: each head has a PE of one cube, which has 8"),
        (["--heads", "9"], "--heads 9: each head has a PE of one cube, which has 8"),
    ],
)
def test_sizes_that_cannot_be_simulated_are_refused(
    arguments: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out"
    assert main(["--bench", "ring-attention", *arguments, "--out", str(out)]) == 2
    assert capsys.readouterr().err.startswith(f"kernbench: error: {problem}")
    assert not out.exists()
