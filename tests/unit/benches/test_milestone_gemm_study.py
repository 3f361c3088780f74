"""The study as the command line has it: what it reads, writes, prints and refuses."""

import struct
import sys
from pathlib import Path

import msgspec
import pytest

from benches.milestone_1h_gemm.figures import FIGURES
from benches.milestone_1h_gemm.rows import Sweep, read_sweep, write_sweep
from benches.milestone_1h_gemm.shapes import Shape, Staging
from benches.milestone_1h_gemm.table import verdict
from coordinator.cli import main
from runtime.errors import UsageError
from tests.support.gemm_rows import row, sweep

SMALL, TALL = Shape(16, 32, 16), Shape(256, 64, 32)
SWEEP = sweep(SMALL, TALL)


def study(*words: str) -> int:
    return main(["--bench", "milestone-1h-gemm", *words])


@pytest.fixture
def fast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the rows of an earlier sweep, and the environment that asks for them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MILESTONE_FAST", "1")
    write_sweep(tmp_path / "gemm_sweep.json", SWEEP)
    return tmp_path


def test_what_is_written_is_read_again(tmp_path: Path):
    path = tmp_path / "gemm_sweep.json"
    write_sweep(path, SWEEP)
    assert read_sweep(path) == SWEEP
    content = msgspec.json.decode(path.read_bytes())
    assert content["version"] == 1
    assert content["hardware"]["memory_gbs"] == 204.8
    assert [(tuple(each["shape"]), each["staging"], each["under_tile"]) for each in content["rows"]] == [
        (shape, staging, shape == SMALL) for shape in (SMALL, TALL) for staging in ("ref_ref", "load_ref", "load_load")
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"{", "truncated"),
        (b'{"version": 2}', "version 2 of the file, this is a program for version 1"),
        (b'{"version": 1}', "missing required field `topology`"),
        (msgspec.json.encode(sweep()), "there must be a row for every shape in every staging"),
        (msgspec.json.encode(msgspec.structs.replace(SWEEP, rows=SWEEP.rows[1:])), "there must be a row for every shape"),
        (msgspec.json.encode(SWEEP).replace(b'"steps"', b'"tiles"'), r"unknown field `tiles` - at `\$.rows"),
    ],
)
def test_a_file_that_is_none_of_ours_is_refused(content: bytes | None, problem: str, tmp_path: Path):
    path = tmp_path / "gemm_sweep.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=f"(?i){problem}"):
        read_sweep(path)


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (row(TALL, Staging.REF_REF, error=1.5), "wrong result: 1.5 times what rounding allows"),
        (row(TALL, Staging.REF_REF, error=float("nan")), "wrong result: nan times"),
        (row(TALL, Staging.REF_REF, extra_ps=-1), "ps are less than the bound of"),
        (msgspec.structs.replace(row(TALL, Staging.LOAD_LOAD), product_utilisation=1.01), "101.00% of the peak"),
    ],
)
def test_what_cannot_be_is_a_fault(wrong: object, fault: str, fast: Path, capsys: pytest.CaptureFixture[str]):
    rows = (*SWEEP.rows, wrong)
    assert fault in verdict(rows)[1]
    assert verdict(SWEEP.rows)[0].startswith("6 products: right against float64, none below its bound")


@pytest.mark.slow
def test_the_fast_way_draws_and_prints_what_is_in_the_file(fast: Path, capsys: pytest.CaptureFixture[str]):
    before = (fast / "gemm_sweep.json").read_bytes()
    assert study("--out", str(fast)) == 0
    assert (fast / "gemm_sweep.json").read_bytes() == before
    assert {path.name for path in fast.iterdir()} == {"gemm_sweep.json", *(f"gemm_{name}.png" for name in FIGURES)}
    printed = capsys.readouterr()
    assert printed.err == ""
    [streamed] = [line.split() for line in printed.out.splitlines() if line.startswith("256x64x32 ") and " ref_ref " in line]
    shares = ["28.4", "28.4", "100.0", "11.1", "dma"]
    # 8 steps: 8 x 8 KiB and 16 KiB of result at 204.8 GB/s are 400 ns, with 50 ns of waiting 450 ns; 8 x 16 ns of engine.
    assert streamed == ["256x64x32", "ref_ref", "8", "450.0", "400.0", "memory", "1.125", *shares]
    assert printed.out.count("under tile") == 3
    assert "…" not in printed.out


@pytest.mark.slow
def test_a_figure_is_1200_pixels_wide(fast: Path):
    assert study("--out", str(fast)) == 0
    for name in FIGURES:
        # Width and height are the first fields of the IHDR chunk (PNG specification, 11.2.2).
        width, height = struct.unpack(">II", (fast / f"gemm_{name}.png").read_bytes()[16:24])
        assert width == 1200
        assert 300 < height < 1500


@pytest.mark.slow
def test_a_fault_in_the_file_is_exit_code_1(fast: Path, capsys: pytest.CaptureFixture[str]):
    rows = (*SWEEP.rows[:-1], row(TALL, Staging.LOAD_LOAD, error=2.0))
    write_sweep(fast / "gemm_sweep.json", Sweep(1, "topology.yaml", "", SWEEP.hardware, rows))
    assert study("--out", str(fast)) == 1
    assert "256x64x32 load_load: wrong result" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--sips", "2"], "--sips is not an option of the study milestone-1h-gemm"),
        (["--ccl", "ccl.yaml"], "--ccl is not an option of the study milestone-1h-gemm"),
        (["--no-data"], "--no-data is not an option of the study milestone-1h-gemm"),
        (["--jitter-ms=5"], "--jitter-ms is not an option of the study milestone-1h-gemm"),
        (["--algorithm", "ring"], "--algorithm is not an option of the study milestone-1h-gemm"),
        (["--shape", "8x8x8"], "unknown option '--shape'; did you mean '--shapes'?"),
        (["--shapes", "8x8"], "--shapes: expected MxKxN"),
        (["--procs", "0"], "--procs: expected an integer of at least 1"),
        (["--topology", "missing.yaml"], "missing.yaml: no such file"),
        (["--out", "file"], "--out: cannot write to file: File exists"),
    ],
)
def test_what_means_nothing_to_the_study_is_refused_by_name(
    words: list[str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    assert study(*words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    [line] = printed.err.splitlines()
    assert line.startswith(f"kernbench: error: {problem}")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("environment", "words", "problem"),
    [
        ("1", ["--out", "elsewhere"], "elsewhere/gemm_sweep.json cannot be read: No such file or directory"),
        ("1", [], "benches/1H_milestone_output/gemm_sweep.json cannot be read: No such file or directory"),
        ("1", ["--shapes", "8x8x8"], "--shapes with MILESTONE_FAST=1: nothing is simulated"),
        ("1", ["--topology", "topology.yaml"], "--topology with MILESTONE_FAST=1: nothing is simulated"),
        ("yes", [], "MILESTONE_FAST is 'yes': 1 draws the figures again without simulating"),
    ],
)
def test_the_fast_way_simulates_nothing_whatever_is_missing(
    environment: str, words: list[str], problem: str, fast: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):  # fmt: skip
    monkeypatch.setenv("MILESTONE_FAST", environment)
    assert study(*words) == 2
    assert problem in capsys.readouterr().err
    assert [path.name for path in fast.iterdir()] == ["gemm_sweep.json"]


def test_without_matplotlib_the_study_says_what_to_install(
    fast: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for module in [name for name in sys.modules if name.startswith(("matplotlib", "benches.milestone_1h_gemm.figures"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [_NoMatplotlib, *sys.meta_path])
    assert study("--out", str(fast)) == 2
    assert capsys.readouterr().err == (
        "kernbench: error: the figures need matplotlib, the extra `plots`: pip install 'kernbench[plots]'\n"
    )


class _NoMatplotlib:
    """An importer of an environment without matplotlib."""

    @staticmethod
    def find_spec(name: str, path: object, target: object = None) -> None:
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name="matplotlib")


def test_the_help_of_a_study_shows_its_options_alone(capsys: pytest.CaptureFixture[str]):
    assert study("--help") == 0
    text = capsys.readouterr().out
    assert "--shapes" in text
    assert "--timeout S" in text
    assert "--sips N" not in text.partition("examples:")[0]


def test_a_study_is_listed_with_a_number_by_which_it_is_found(capsys: pytest.CaptureFixture[str]):
    assert main(["--list"]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if "milestone-1h-gemm" in line]
    assert main(["--bench", line.split()[0], "--sips", "2"]) == 2
    assert "of the study milestone-1h-gemm" in capsys.readouterr().err


def test_a_study_and_a_script_are_one_too_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    script = tmp_path / "train.py"
    script.touch()
    assert study(str(script)) == 2
    assert "either a bench or a script" in capsys.readouterr().err
