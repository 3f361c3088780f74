"""The all-reduce study as the command line has it: what it reads, writes, prints and refuses."""

import csv
import struct
from pathlib import Path

import msgspec
import numpy as np
import pytest

from benches.milestone_1h_ccl.figures import FIGURES, size_label
from benches.milestone_1h_ccl.point import combined, numbers
from benches.milestone_1h_ccl.rows import Row, read_sweep, write_summary, write_sweep
from benches.milestone_1h_ccl.table import verdict
from coordinator.cli import main
from runtime.errors import UsageError
from tests.support.ccl_rows import RING, row, sweep

SWEEP = sweep()


def study(*words: str) -> int:
    return main(["--bench", "milestone-1h-ccl", *words])


@pytest.fixture
def fast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the rows of an earlier sweep, and the environment that asks for them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MILESTONE_FAST", "1")
    write_sweep(tmp_path / "ccl_sweep.json", SWEEP)
    return tmp_path


def test_what_is_written_is_read_again(tmp_path: Path):
    path = tmp_path / "ccl_sweep.json"
    write_sweep(path, SWEEP)
    assert read_sweep(path) == SWEEP
    content = msgspec.json.decode(path.read_bytes())
    assert content["version"] == 1
    assert content["layouts"][1]["ring"][1] == [1, 0, 2]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"{", "truncated"),
        (b'{"version": 2}', "version 2 of the file, this is a program for version 1"),
        (b'{"version": 1}', "missing required field `topology`"),
        (msgspec.json.encode(msgspec.structs.replace(SWEEP, rows=SWEEP.rows[:-1])), "there must be rows of all three parts"),
        (msgspec.json.encode(msgspec.structs.replace(SWEEP, rows=SWEEP.rows[:1] + SWEEP.rows)), "none twice"),
        (msgspec.json.encode(msgspec.structs.replace(SWEEP, layouts=())), "there must be a layout for every network"),
        (msgspec.json.encode(SWEEP).replace(b'"wrong"', b'"bad"'), r"unknown field `bad` - at `\$.rows"),
    ],
)
def test_a_file_that_is_none_of_ours_is_refused(content: bytes | None, problem: str, tmp_path: Path):
    path = tmp_path / "ccl_sweep.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=f"(?i){problem}"):
        read_sweep(path)


def test_the_summary_has_a_line_for_each_row(tmp_path: Path):
    with write_summary(tmp_path / "ccl_summary.csv", SWEEP).open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(SWEEP.rows)
    # 6 steps of 200 ns, 1.5 x 256 B at 128 GB/s, 60 ns; explained are 50 of the 60.
    assert (lines[0]["time_ns"], lines[0]["alpha_beta_ns"], lines[0]["explained_ns"]) == ("1263.0", "1203.0", "1253.0")
    assert float(lines[0]["busbw_gbs"]) == pytest.approx(1.5 * 256 / 1263, rel=1e-2)
    assert {line["buffer_kind"] for line in lines if line["explained_ns"]} == {"tcm"}


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (row("size", RING, "ring", "tcm", 4096, wrong=3), "3 elements are wrong"),
        (row("size", RING, "ring", "tcm", 4096, skew_ps=7), "kernels start 7 ps apart"),
        (row("size", RING, "ring", "tcm", 4096, extra_ps=-1), "ps are less than the bound of"),
    ],
)
def test_what_cannot_be_is_a_fault(wrong: Row, fault: str):
    assert fault in verdict((*SWEEP.rows, wrong))[1]
    assert verdict(SWEEP.rows) == [f"{len(SWEEP.rows)} all-reduces: every sum right bit by bit, none below its bound"]


def test_the_sum_is_over_ranks_and_over_the_cubes_that_take_part():
    given = [numbers(rank, 2, 5) for rank in range(3)]
    by_hand = sum(each.astype(np.int64) for each in given).sum(axis=0)
    assert np.array_equal(combined(given), by_hand.astype(np.int32))
    assert not np.array_equal(given[0], given[1])


@pytest.mark.slow
def test_the_fast_way_draws_and_prints_what_is_in_the_file(fast: Path, capsys: pytest.CaptureFixture[str]):
    before = (fast / "ccl_sweep.json").read_bytes()
    assert study("--out", str(fast)) == 0
    assert (fast / "ccl_sweep.json").read_bytes() == before
    figures = {f"ccl_{name}.png" for name in FIGURES}
    assert {path.name for path in fast.iterdir()} == {"ccl_sweep.json", "ccl_summary.csv", *figures}
    for name in figures:
        # Width and height are the first fields of the IHDR chunk (PNG specification, 11.2.2).
        width, height = struct.unpack(">II", (fast / name).read_bytes()[16:24])
        assert width == 1200
        assert 300 < height < 1500
    printed = capsys.readouterr()
    assert printed.err == ""
    [first] = [line.split() for line in printed.out.splitlines() if line.startswith("size  ") and "torus_2d 2x2  ring" in line][
        :1
    ]
    assert first[3:] == ["ring", "tcm", "4", "256", "1,263.0", "1,203.0", "1.050", "1,253.0", "0.30", "0"]
    assert "ASTRA-sim        8 NPUs  1 MiB    64.44 us, explained 64.46 us" in printed.out
    assert "…" not in printed.out


@pytest.mark.slow
def test_a_fault_in_the_file_is_exit_code_1(fast: Path, capsys: pytest.CaptureFixture[str]):
    rows = (*SWEEP.rows, row("size", RING, "ring", "tcm", 4096, wrong=1))
    write_sweep(fast / "ccl_sweep.json", msgspec.structs.replace(SWEEP, rows=rows))
    assert study("--out", str(fast)) == 1
    assert "ring_1d 4 ring tcm 4096 B: 1 elements are wrong" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("environment", "words", "problem"),
    [
        ("0", ["--sips", "2"], "--sips is not an option of the study milestone-1h-ccl"),
        ("0", ["--max-bytes", "8"], "--max-bytes 8: the sizes of the sweep over kinds of queues start at 1024"),
        ("0", ["--topology", "missing.yaml"], "missing.yaml: no such file"),
        ("1", [], "benches/1H_milestone_output/ccl_sweep.json cannot be read: No such file or directory"),
        ("1", ["--max-bytes", "1024"], "--max-bytes with MILESTONE_FAST=1: nothing is simulated"),
        ("1", ["--topology", "topology.yaml"], "--topology with MILESTONE_FAST=1: nothing is simulated"),
        ("yes", [], "MILESTONE_FAST is 'yes': 1 draws the figures again without simulating"),
    ],
)
def test_what_means_nothing_to_the_study_is_refused_by_name(
    environment: str, words: list[str], problem: str, fast: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):  # fmt: skip
    monkeypatch.setenv("MILESTONE_FAST", environment)
    assert study(*words) == 2
    assert problem in capsys.readouterr().err
    assert [path.name for path in fast.iterdir()] == ["ccl_sweep.json"]


def test_sizes_are_named_as_people_say_them():
    assert [size_label(nbytes) for nbytes in (256, 1024, 65_536, 1 << 20)] == ["256 B", "1 KiB", "64 KiB", "1 MiB"]
