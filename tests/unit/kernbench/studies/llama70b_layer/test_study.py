"""The study of a layer: its points, its faults, its file and refused flags."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernbench.cli.main import main
from kernbench.studies import results_file
from kernbench.studies.catalogue import LayerFlags
from kernbench.studies.llama70b_layer.program import PARTS
from kernbench.studies.llama70b_layer.rows import LayerPart, LayerResults, LayerRow
from kernbench.studies.llama70b_layer.study import LayerStudy
from kernbench.studies.parameter_study import TopologyText
from runtime.core.errors import UsageError
from tests.support.runs import ROOT

STUDY = LayerStudy(LayerFlags(sips_list="1,2,4,8"))


def row(**changes: Any) -> LayerRow:
    right = LayerRow(
        sips=2,
        tokens=1,
        context=8192,
        hidden=8192,
        parts=tuple(LayerPart(name, 1000, 500, "memory") for name in PARTS),
        error=None,
    )
    return msgspec.structs.replace(right, **changes)


def results(*rows: LayerRow) -> LayerResults:
    return LayerResults(version=1, topology="topology.yaml", topology_hash="", rows=rows)


def test_small_layers_are_checked_and_large_ones_run_without_data():
    text = (ROOT / "topology.yaml").read_text("utf-8")
    points = STUDY.points(TopologyText("topology.yaml", text))
    assert [(each.shape.tokens, each.sips) for each in points if each.has_data] == [
        (1, 1),
        (1, 2),
        (128, 1),
        (128, 2),
    ]
    assert [(each.shape.tokens, each.sips) for each in points if not each.has_data] == [
        *((1, sips) for sips in (1, 2, 4, 8)),
        *((64, sips) for sips in (1, 2, 4, 8)),
    ]


def test_the_throughput_is_that_of_eighty_layers():
    one = row()
    assert one.tokens_per_s == 1e12 / (80 * 7000)
    assert (one.exposed_ps, one.bound_ps) == (2000, 3500)
    [line] = STUDY.findings(results(one))
    assert "1 / (80 x 7.0 ns) = 1,785,714" in line


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"error": 0.03}, "wrong by 0.03, 0.02 are allowed"),
        ({"error": float("nan")}, "wrong by nan"),
        (
            {"parts": (LayerPart("down", 499, 500, "memory"),)},
            "down: 499 ps are less than the bound of 500 ps",
        ),
    ],
)
def test_a_failed_check_is_a_fault(changes: dict[str, Any], fault: str):
    [found] = row(**changes).faults
    assert found.startswith(fault)
    assert row().faults == []


def test_a_file_without_a_layer_at_full_size_is_refused(tmp_path: Path):
    path = tmp_path / "llama70b_layer.json"
    results_file.write(path, results(row()))
    assert STUDY.read(path) == results(row())
    results_file.write(path, results(row(error=1e-3)))
    with pytest.raises(UsageError, match="a row at full size"):
        STUDY.read(path)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--context", "0"], "--context 0: must be at least 1"),
        (["--context", "100"], "16 PEs share the keys of a head, so it must be a multiple of 16"),
        (["--context", "32768"], "and the TCM of one has room for 1024: at most 16384"),
        (["--tokens", "-64"], "--tokens -64: must be a multiple of 64 up to 4096"),
        (["--tokens", "100"], "--tokens 100: must be a multiple of 64 up to 4096; 0 leaves"),
        (["--tokens", "4160"], "--tokens 4160: must be a multiple of 64 up to 4096; 0 leaves"),
        (["--sips-list", "3"], "--sips-list 3: the 8 KV heads do not divide by it"),
        (["--sips-list", "16"], "--sips-list '16': expected rising numbers from 1 to 8"),
        (["--tokens", "many"], "--tokens"),
    ],
)
def test_sizes_that_cannot_be_simulated_are_refused(
    arguments: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out"
    assert main(["--bench", "llama70b-layer", *arguments, "--out", str(out)]) == 2
    assert problem in capsys.readouterr().err
    assert not out.exists()
