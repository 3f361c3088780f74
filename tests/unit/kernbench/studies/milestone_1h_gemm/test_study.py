"""The study of matrix products: its files, its lines, and its options on the command line."""

from pathlib import Path

import msgspec
import pytest

from kernbench.cli.main import main
from kernbench.studies import results_file
from kernbench.studies.catalogue import GemmFlags
from kernbench.studies.milestone_1h_gemm.rows import GemmResults, GemmRow
from kernbench.studies.milestone_1h_gemm.study import GemmStudy
from kernbench.studies.milestone_1h_gemm.theory import ProductShape, Staging
from runtime.core.errors import UsageError
from tests.support.gemm_rows import results, row

SMALL, TALL = ProductShape(16, 32, 16), ProductShape(256, 64, 32)
RESULTS = results(SMALL, TALL)
STUDY = GemmStudy(GemmFlags(shapes="16x32x16,256x64x32"))


def with_rows(*rows: GemmRow) -> GemmResults:
    return msgspec.structs.replace(RESULTS, rows=rows)


def study(*arguments: str) -> int:
    return main(["--bench", "milestone-1h-gemm", *arguments])


def test_the_file_names_the_hardware_and_every_point():
    content = msgspec.json.decode(msgspec.json.encode(RESULTS))
    assert content["hardware"]["memory_gbs"] == 204.8
    assert [
        (tuple(each["shape"]), each["staging"], each["under_tile"]) for each in content["rows"]
    ] == [
        (shape, staging, shape == SMALL)
        for shape in (SMALL, TALL)
        for staging in ("ref_ref", "load_ref", "load_load")
    ]


@pytest.mark.parametrize("rows", [(), RESULTS.rows[1:]], ids=["none", "one lacks"])
def test_a_file_that_is_no_full_grid_is_refused(rows: tuple[GemmRow, ...], tmp_path: Path):
    path = tmp_path / "gemm_sweep.json"
    results_file.write(path, msgspec.structs.replace(RESULTS, rows=rows))
    with pytest.raises(UsageError, match="there must be a row for every shape in every staging"):
        STUDY.read(path)


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (row(TALL, Staging.REF_REF, error=1.5), "wrong result: 1.5 times what rounding allows"),
        (row(TALL, Staging.REF_REF, error=float("nan")), "wrong result: nan times"),
        (row(TALL, Staging.REF_REF, extra_ps=-1), "ps are less than the bound of"),
        (
            msgspec.structs.replace(row(TALL, Staging.LOAD_LOAD), product_utilisation=1.01),
            "101.00% of the peak",
        ),
    ],
)
def test_a_failed_check_is_a_fault(wrong: GemmRow, fault: str):
    assert fault in STUDY.verdict(with_rows(*RESULTS.rows, wrong))[1]
    assert STUDY.verdict(RESULTS)[0].startswith(
        "6 products: right against float64, none below its bound"
    )


def test_a_line_of_the_table_has_the_time_the_bound_and_the_share_of_the_peak(
    capsys: pytest.CaptureFixture[str],
):
    STUDY.print_table(RESULTS)
    printed = capsys.readouterr().out
    [streamed] = [
        line.split()
        for line in printed.splitlines()
        if line.startswith("256x64x32 ") and " ref_ref " in line
    ]
    shares = ["28.4", "28.4", "100.0", "11.1", "dma"]
    # 8 steps: 8 x 8 KiB and 16 KiB of result at 204.8 GB/s are 400 ns; 50 ns of waiting;
    # 8 x 16 ns of engine.
    assert streamed == ["256x64x32", "ref_ref", "8", "450.0", "400.0", "memory", "1.125", *shares]
    assert printed.count("under tile") == 3


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--sips", "2"], "--sips is not an option of the study milestone-1h-gemm"),
        (["--ccl", "ccl.yaml"], "--ccl is not an option of the study milestone-1h-gemm"),
        (["--no-data"], "--no-data is not an option of the study milestone-1h-gemm"),
        (["--jitter-ms=5"], "--jitter-ms is not an option of the study milestone-1h-gemm"),
        (["--algorithm", "ring"], "--algorithm is not an option of the study milestone-1h-gemm"),
        (["--shape", "8x8x8"], "unknown option '--shape'; did you mean '--shapes'?"),
        (["--shapes", "8x8"], "--shapes: expected MxKxN"),
        (["--procs", "0"], "--procs: expected an integer of at least 1"),
    ],
)
def test_an_option_that_does_not_apply_is_refused_by_name(
    arguments: list[str],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    assert study(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    [line] = printed.err.splitlines()
    assert line.startswith(f"kernbench: error: {problem}")
    assert list(tmp_path.iterdir()) == []


def test_the_help_of_a_study_shows_only_its_options(capsys: pytest.CaptureFixture[str]):
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


def test_a_study_and_a_script_together_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    script = tmp_path / "train.py"
    script.touch()
    assert study(str(script)) == 2
    assert "either a bench or a script" in capsys.readouterr().err
