"""The study of the KV cache: its sizes, its file, its lines, its figures and refused flags."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernbench.cli.main import main
from kernbench.studies import results_file
from kernbench.studies.catalogue import KvFlags
from kernbench.studies.kv_transfer.points import sizes_of, sweep
from kernbench.studies.kv_transfer.rows import KvBounds, KvResults, KvRow, LinkLoad, RankOrder
from kernbench.studies.kv_transfer.study import KvTransferStudy
from runtime.core.errors import UsageError
from tests.support.topologies import variant_text

FLAGS = KvFlags(pairs="1:2,2:2", tokens="512,1024", orders="blocks,mirrored")
SIZES = sizes_of(FLAGS)
STUDY = KvTransferStudy(FLAGS)


def row(size: tuple[tuple[int, int], RankOrder, int], **changes: Any) -> KvRow:
    """Two layers of 100 ns each, and transfers of 60 ns: 20 ns of latency, 40 ns of bytes."""
    (prefill, decode), order, tokens = size
    shared = (LinkLoad(source=1, target=2, nbytes=5120, pairs=((0, 2), (1, 3))),)
    right = KvRow(
        prefill=prefill,
        decode=decode,
        order=order,
        tokens=tokens,
        new_tokens=64,
        layers_ps=(100_000, 200_000),
        after_ps=310_000,
        beside_prefill_ps=201_000,
        arrivals_ps=(170_000, 270_000),
        links=shared,
        bounds=KvBounds(
            port="SIP 1 to SIP 2",
            port_bytes=5120,
            link_ps=60_000.0,
            alpha_ps=20_000.0,
            memory_ps=1_000.0,
        ),
        wrong=0 if tokens == 512 else None,
    )
    return msgspec.structs.replace(right, **changes)


ROWS = tuple(map(row, sweep(SIZES)))
FULL = KvResults(version=1, sizes=SIZES, topology="t.yaml", topology_hash="", rows=ROWS)


def test_the_derived_numbers_of_a_row():
    first = ROWS[0]
    assert (first.added_after_ps, first.bound_after_ps) == (110_000, 100_000)
    # A layer takes longer than its transfer, so the last one is left.
    assert (first.added_beside_ps, first.bound_beside_ps) == (70_000, 60_000)
    assert first.utilisation == pytest.approx(80 / 110)
    assert (first.layer_ps, first.bounds.binds) == (100_000, "SIP 1 to SIP 2")
    memory = msgspec.structs.replace(first.bounds, memory_ps=50_000.0)
    assert (memory.binds, memory.after_ps(2)) == ("HBM", 120_000)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"wrong": 3}, "3 elements are wrong"),
        ({"after_ps": 299_999}, "added without overlap: 99,999 ps are less than the bound of 100"),
        (
            {"arrivals_ps": (1, 259_999)},
            "added with overlap: 59,999 ps are less",
        ),
    ],
)
def test_a_failed_check_is_a_fault(changes: dict[str, Any], fault: str):
    [found] = row(next(sweep(SIZES)), **changes).faults
    assert found.startswith(fault)
    assert STUDY.verdict(FULL) == [STUDY.passed(FULL)]


def test_the_pairs_that_share_a_link_are_named():
    assert next(iter(STUDY.findings(FULL))) == "1 to 2 blocks       SIP 1 to 2: 0 to 2, 1 to 3"


def test_a_file_that_lacks_a_row_is_refused(tmp_path: Path):
    path = tmp_path / "kv_transfer.json"
    results_file.write(path, FULL)
    assert STUDY.read(path) == FULL
    results_file.write(path, msgspec.structs.replace(FULL, rows=ROWS[1:]))
    with pytest.raises(UsageError, match="a row for each of its sizes"):
        STUDY.read(path)


@pytest.mark.slow
def test_the_figures_of_a_grid_of_sips_are_drawn(tmp_path: Path):
    sizes = sizes_of(KvFlags(pairs="2:2", tokens="512", network="mesh_2d_no_wrap"))
    rows = tuple(map(row, sweep(sizes)))
    results = msgspec.structs.replace(FULL, sizes=sizes, rows=rows)
    files = STUDY.draw(results, tmp_path)
    assert [path.name for path in files] == ["kv_transfer_added.png", "kv_transfer_links.png"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--pairs", "2:3"], "--pairs: '2:3' must be numbers of SIPs"),
        (["--pairs", "2"], "--pairs: '2' must be numbers of SIPs"),
        (["--pairs", "0:2"], "--pairs: '0:2' must be numbers of SIPs"),
        (["--pairs", "2:2,2:2"], "--pairs 2:2,2:2: each value once"),
        (["--tokens", "2048,512"], "--tokens '2048,512': expected rising numbers"),
        (["--tokens", str(10**9)], "--tokens '1000000000': expected rising numbers from 1 to"),
        (["--tokens", "100"], "--tokens 100: 1 to 4 SIPs exchange 400 rows of K and V, which do"),
        (["--orders", "block"], "--orders: 'block' is not known; did you mean 'blocks'?"),
        (["--layers", "0"], "--layers 0: llama-70B has 1 to 80 layers"),
        (["--layers", "81"], "--layers 81: llama-70B has 1 to 80 layers"),
        (["--new-tokens", "0"], "--new-tokens 0: must be at least 1"),
        (["--network", "ring"], "--network: 'ring' is not known; did you mean 'ring_1d'?"),
    ],
)
def test_sizes_that_cannot_be_simulated_are_refused(
    arguments: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out"
    assert main(["--bench", "kv-transfer", *arguments, "--out", str(out)]) == 2
    assert capsys.readouterr().err.startswith(f"kernbench: error: {problem}")
    assert not out.exists()


def test_a_switch_between_the_sips_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "switch.yaml"
    file.write_text(variant_text(system__sips__fabric="switch"))
    assert main(["--bench", "kv-transfer", "--topology", str(file), "--out", str(tmp_path)]) == 2
    assert "system.sips.fabric is 'switch'; this study is about" in capsys.readouterr().err
