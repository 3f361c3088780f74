"""The study at validation scale: its file, its faults and its verdict."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies import results_file
from kernbench.studies.milestone_gqa_llama70b.op_log import AttentionPanel, OpLogSummary
from kernbench.studies.milestone_gqa_llama70b.validation import (
    ValidationConfig,
    ValidationResults,
    ValidationRow,
    ValidationStudy,
)
from kernbench.studies.parameter_study import TopologyText
from runtime.core.errors import UsageError
from tests.support.runs import ROOT

STUDY = ValidationStudy()
TOPOLOGY = TopologyFile.of((ROOT / "topology.yaml").read_text("utf-8"))
COUNTS = OpLogSummary(
    gemm_count=8, ipcq_send_count=12, ipcq_recv_count=12, dma_read_count=12, dma_write_count=4
)


def row(panel: AttentionPanel = AttentionPanel.MULTI_USER_DECODE, **changes: Any) -> ValidationRow:
    ranks = ValidationConfig().ranks(panel)
    products = 2 * ranks * (1 if panel.is_decode else ranks)
    counts = msgspec.structs.replace(
        COUNTS, gemm_count=products, dma_read_count=3 * ranks, dma_write_count=ranks
    )
    right = ValidationRow(
        panel=panel,
        n_ranks=ranks,
        op_log_summary=counts,
        kernel_ps=1000,
        f16_error=1e-4,
        f32_error=1e-7,
        masked_error=1e-7 if panel.is_decode else None,
        shifted_is_equal=True,
    )
    return msgspec.structs.replace(right, **changes)


def counted(**changes: int) -> ValidationRow:
    return row(op_log_summary=msgspec.structs.replace(COUNTS, **changes))


def results(*rows: ValidationRow) -> ValidationResults:
    return ValidationResults(
        version=1,
        validation_scale=True,
        panels=tuple(AttentionPanel),
        config=ValidationConfig(),
        topology="topology.yaml",
        topology_hash="",
        rows=rows,
    )


FULL = results(*map(row, AttentionPanel))


def test_the_file_has_the_keys_that_readers_of_it_use():
    content = msgspec.json.decode(msgspec.json.encode(FULL))
    assert STUDY.results_name == "gqa/sweep.json"
    assert (content["version"], content["validation_scale"]) == (1, True)
    panels = ["single_user_prefill", "single_user_decode", "multi_user_prefill"]
    assert content["panels"] == [*panels, "multi_user_decode"]
    assert content["config"] == {
        "S_q_prefill": 16,
        "S_kv_per_rank": 16,
        "h_q": 1,
        "h_kv": 1,
        "d_head": 64,
        "n_ranks_single_user": 8,
        "n_ranks_multi_user": 4,
    }
    last = content["rows"][3]
    assert (last["panel"], last["n_ranks"]) == ("multi_user_decode", 4)
    assert last["op_log_summary"] == {
        "gemm_count": 8,
        "ipcq_send_count": 12,
        "ipcq_recv_count": 12,
        "dma_read_count": 12,
        "dma_write_count": 4,
    }


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (counted(gemm_count=9), "9 products, 8 expected"),
        (counted(ipcq_send_count=0, ipcq_recv_count=0), "0 sends, 0 receives"),
        (counted(ipcq_recv_count=11), "12 sends, 11 receives"),
        (counted(dma_read_count=11), "11 reads, 4 writes"),
        (counted(dma_write_count=3), "12 reads, 3 writes"),
        (row(f16_error=1.1e-3), "wrong by 0.0011 (float16), 0.001 are allowed"),
        (row(f32_error=3e-6), "wrong by 3e-06 (float32), 2e-06 are allowed"),
        (row(f32_error=float("nan")), "wrong by nan (float32)"),
        (row(masked_error=3e-6), "wrong by 3e-06 (masked keys)"),
        (row(shifted_is_equal=False), "a number added to all scores changes the result"),
    ],
)
def test_a_failed_check_is_a_fault(wrong: ValidationRow, fault: str):
    [found] = wrong.faults
    assert found.startswith(fault)
    assert STUDY.verdict(results(row(), wrong))[0] == "1 FAULTS"


def test_rows_without_faults_pass():
    assert STUDY.verdict(FULL) == [STUDY.passed(FULL)]


@pytest.mark.parametrize("rows", [(), FULL.rows[1:], (*FULL.rows, row())])
def test_a_file_without_a_row_for_each_panel_is_refused(
    rows: tuple[ValidationRow, ...], tmp_path: Path
):
    path = tmp_path / "sweep.json"
    results_file.write(path, results(*rows))
    with pytest.raises(UsageError, match="one row for each of single_user_prefill, single_user_d"):
        STUDY.read(path)


@pytest.mark.parametrize(
    "changes",
    [{"sip.cube_mesh": {"w": 1, "h": 4}}, {"cube.pe_layout.pe_per_corner": 1}],
    ids=["a column of cubes", "4 PEs"],
)
def test_a_sip_without_the_rings_is_refused(changes: dict[str, Any]):
    smaller = TopologyText("small.yaml", TOPOLOGY.with_values(changes).text)
    with pytest.raises(UsageError, match=r"small\.yaml: the validation scale needs 8 PEs a cube"):
        STUDY.points(smaller)
