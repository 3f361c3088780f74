"""The study at headline scale: its sizes, its file, its faults and its options."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernbench.cli.main import main
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies import results_file
from kernbench.studies.catalogue import GqaFlags
from kernbench.studies.milestone_gqa_llama70b.headline import HeadlineStudy
from kernbench.studies.milestone_gqa_llama70b.headline_rows import (
    AttentionBounds,
    HeadlineResults,
    HeadlineRow,
    sweep,
)
from kernbench.studies.milestone_gqa_llama70b.op_log import AttentionPanel, OpLogSummary, TimeParts
from kernbench.studies.parameter_study import TopologyText
from runtime.core.errors import UsageError
from tests.support.runs import ROOT

STUDY = HeadlineStudy(GqaFlags(prefill="1024,2048,4096", decode="8192", sips_list="1,2,8"))
TOPOLOGY = TopologyFile.of((ROOT / "topology.yaml").read_text("utf-8"))


def row(panel: AttentionPanel, batch: int, tokens: int, sips: int, **changes: Any) -> HeadlineRow:
    right = HeadlineRow(
        panel=panel,
        n_ranks=sips,
        batch=batch,
        tokens=tokens,
        op_log_summary=OpLogSummary(
            gemm_count=2, ipcq_send_count=0, ipcq_recv_count=0, dma_read_count=3, dma_write_count=1
        ),
        kernel_ps=tokens * 1000 // sips,
        parts=TimeParts(
            gemm_ps=3.0, vector_ps=1.0, memory_ps=1.0, message_ps=1.0, other_ps=1.0, idle_ps=1.0
        ),
        bounds=AttentionBounds(gemm_ps=100.0, vector_ps=300.0, memory_ps=200.0),
        error=1e-4 if panel.is_decode else None,
    )
    return msgspec.structs.replace(right, **changes)


def results(*rows: HeadlineRow) -> HeadlineResults:
    return HeadlineResults(
        version=1,
        validation_scale=False,
        panels=tuple(AttentionPanel),
        config=STUDY.config,
        topology="topology.yaml",
        topology_hash="",
        rows=rows,
    )


FULL = results(*(row(*size) for size in sweep(STUDY.config)))


def test_long_prefills_run_on_the_last_number_of_sips():
    sizes = [(size.batch, size.tokens, size.sips) for size in sweep(STUDY.config)]
    alone = [(1, tokens, sips) for tokens in (1024, 2048) for sips in (1, 2, 8)]
    alone += [(1, 4096, 8)]
    decodes = [(1, 8192, 1), (1, 8192, 2), (1, 8192, 8)]
    together = [(4, 1024, 8), (4, 8192, 1), (4, 8192, 2), (4, 8192, 8)]
    assert sizes == [*alone, *decodes, *together]


def test_a_point_splits_the_layer_over_sips_and_the_keys_of_a_decode_over_pes():
    points = STUDY.points(TopologyText("topology.yaml", TOPOLOGY.text))
    decode = {(point.layer.batch, point.sips): point for point in points if point.panel.is_decode}
    assert [decode[1, sips].parts for sips in (1, 2, 8)] == [16, 32, 128]
    assert [decode[4, sips].parts for sips in (1, 2, 8)] == [4, 8, 32]
    assert (decode[1, 8].width, decode[1, 1].width) == (64, 128)
    assert decode[1, 8].own.heads == 8


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"error": 1.1e-3}, "wrong by 0.0011, 0.001 are allowed"),
        ({"error": float("nan")}, "wrong by nan"),
        ({"head_error": 0.002}, "wrong by 0.002 (one head)"),
        ({"halves_error": 0.002}, "wrong by 0.002 (halves)"),
        ({"kernel_ps": 299}, "299 ps are less than the bound of 300 ps"),
    ],
)
def test_a_failed_check_is_a_fault(changes: dict[str, Any], fault: str):
    wrong = row(AttentionPanel.SINGLE_USER_DECODE, 1, 8192, 1, **changes)
    [found] = wrong.faults
    assert found.startswith(fault)
    assert STUDY.verdict(FULL) == [STUDY.passed(FULL)]


def test_a_file_that_lacks_a_row_is_refused(tmp_path: Path):
    path = tmp_path / "sweep.json"
    results_file.write(path, results(*FULL.rows[1:]))
    with pytest.raises(UsageError, match="a row for each size of its config"):
        STUDY.read(path)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--prefill", "2048,1024"], "--prefill '2048,1024': expected rising numbers"),
        (["--decode", "1k"], "--decode '1k': expected rising numbers"),
        (["--sips-list", "3"], "--sips-list 3: the 8 KV heads do not divide by it"),
        (["--sips-list", "16"], "--sips-list '16': expected rising numbers from 1 to 8"),
        (["--batch", "1"], "--batch 1: several users are 2 to 256"),
        (["--batch", str(10**9)], "--batch 1000000000: several users are 2 to 256"),
        (["--batch", "3"], "--batch 3: 24 KV heads times users of a SIP and 128 PEs"),
        (["--prefill", "100"], "--prefill 100: queries are computed in blocks of 64, so it must"),
        (["--prefill", str(10**9)], "--prefill '1000000000': expected rising numbers from 1 to"),
        (
            ["--prefill", "512,960"],
            "--prefill 512,960: 4 users share the tokens of the longest prompt, so one number must",
        ),
        (["--decode", "1000"], "--decode 1000: on 1 SIP, 16 PEs share the keys of a head, so it"),
        (["--decode", str(10**9)], "--decode '1000000000': expected rising numbers from 1 to"),
    ],
)
def test_sizes_that_cannot_be_simulated_are_refused(
    arguments: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out"
    assert main(["--bench", "milestone-gqa-llama70b", *arguments, "--out", str(out)]) == 2
    assert capsys.readouterr().err.startswith(f"kernbench: error: {problem}")
    assert not out.exists()


@pytest.mark.parametrize(
    ("value", "arguments", "problem"),
    [
        ("2", [], "GQA_VALIDATION is '2': 1 runs the validation scale"),
        ("1", ["--batch", "8"], "--batch with GQA_VALIDATION=1: the validation scale has fixed"),
    ],
)
def test_the_scale_is_chosen_by_an_environment_variable(
    value: str,
    arguments: list[str],
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("GQA_VALIDATION", value)
    assert main(["--bench", "milestone-gqa-llama70b", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"kernbench: error: {problem}")
