"""The study of all-reduces: its files, its lines, and the options it refuses."""

import csv
from pathlib import Path

import msgspec
import numpy as np
import pytest

from kernbench.cli.main import main
from kernbench.studies import results_file
from kernbench.studies.catalogue import CclFlags
from kernbench.studies.milestone_1h_ccl.rows import CclResults, CclRow
from kernbench.studies.milestone_1h_ccl.study import (
    CclStudy,
    combined,
    shard,
)
from kernbench.studies.plots import size_label
from runtime.core.errors import UsageError
from tests.support.ccl_rows import RING, results, row

RESULTS = results()
STUDY = CclStudy(CclFlags())


def with_rows(*rows: CclRow) -> CclResults:
    return msgspec.structs.replace(RESULTS, rows=rows)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"rows": RESULTS.rows[:-1]}, "there must be rows of all three parts"),
        ({"rows": RESULTS.rows[:1] + RESULTS.rows}, "none twice"),
        ({"layouts": ()}, "there must be a layout for every network"),
    ],
)
def test_a_file_that_lacks_something_is_refused(
    changed: dict[str, tuple[object, ...]], problem: str, tmp_path: Path
):
    path = tmp_path / "ccl_sweep.json"
    results_file.write(path, msgspec.structs.replace(RESULTS, **changed))
    with pytest.raises(UsageError, match=problem):
        STUDY.read(path)


def test_the_file_has_the_links_of_every_network():
    content = msgspec.json.decode(msgspec.json.encode(RESULTS))
    assert content["layouts"][1]["order"] == [0, 1, 3, 2]


def test_the_csv_file_has_a_line_for_each_row(tmp_path: Path):
    columns = STUDY.csv_columns()
    cells = ([cell(row) for cell in columns.values()] for row in RESULTS.rows)
    with results_file.write_csv(tmp_path / "rows.csv", columns, cells).open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(RESULTS.rows)
    # 6 steps of 200 ns, 1.5 x 256 B at 128 GB/s, 60 ns; explained are 50 of the 60.
    assert (lines[0]["time_ns"], lines[0]["alpha_beta_ns"], lines[0]["explained_ns"]) == (
        "1263.0",
        "1203.0",
        "1253.0",
    )
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
def test_a_failed_check_is_a_fault(wrong: CclRow, fault: str):
    assert fault in STUDY.verdict(with_rows(*RESULTS.rows, wrong))[1]
    assert STUDY.verdict(RESULTS) == [
        f"{len(RESULTS.rows)} all-reduces: every sum right bit by bit, none below its bound"
    ]


def test_the_sum_is_over_ranks_and_over_the_cubes_that_take_part():
    given = [shard(rank, 2, 5) for rank in range(3)]
    by_hand = sum(each.astype(np.int64) for each in given).sum(axis=0)
    assert np.array_equal(combined(given), by_hand.astype(np.int32))
    assert not np.array_equal(given[0], given[1])


def test_a_line_of_the_table_has_the_time_and_the_closed_forms(
    capsys: pytest.CaptureFixture[str],
):
    STUDY.print_table(RESULTS)
    first = next(
        line.split()
        for line in capsys.readouterr().out.splitlines()
        if "torus_2d 2x2  ring" in line
    )
    assert first[3:] == [
        "ring",
        "tcm",
        "4",
        "256",
        "1,263.0",
        "1,203.0",
        "1.050",
        "1,253.0",
        "0.30",
        "0",
    ]


def test_the_times_of_the_other_simulator_are_printed_with_their_closed_form():
    assert "ASTRA-sim        8 NPUs  1 MiB    64.44 us, explained 64.46 us" in STUDY.findings(
        results()
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--sips", "2"], "--sips is not an option of the study milestone-1h-ccl"),
        (["--max-bytes", "8"], "--max-bytes 8: must be from 1024 to 67108864"),
        (["--max-bytes", str(10**9)], "--max-bytes 1000000000: must be from 1024 to 67108864"),
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
    assert main(["--bench", "milestone-1h-ccl", *arguments]) == 2
    assert problem in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_sizes_are_shown_with_binary_units():
    assert [size_label(nbytes) for nbytes in (256, 1024, 65_536, 1 << 20)] == [
        "256 B",
        "1 KiB",
        "64 KiB",
        "1 MiB",
    ]
