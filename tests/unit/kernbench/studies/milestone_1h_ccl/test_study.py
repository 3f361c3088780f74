"""The all-reduce study: what it reads, writes, prints and refuses."""

import csv
from pathlib import Path

import msgspec
import numpy as np
import pytest

from kernbench.cli.main import main
from kernbench.studies import sweep_file
from kernbench.studies.milestone_1h_ccl.figures import size_label
from kernbench.studies.milestone_1h_ccl.point import combined, numbers
from kernbench.studies.milestone_1h_ccl.rows import Row, read_sweep, write_summary
from kernbench.studies.milestone_1h_ccl.table import print_table, reference_lines, verdict
from runtime.core.errors import UsageError
from tests.support.ccl_rows import RING, row, sweep

SWEEP = sweep()


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"rows": SWEEP.rows[:-1]}, "there must be rows of all three parts"),
        ({"rows": SWEEP.rows[:1] + SWEEP.rows}, "none twice"),
        ({"layouts": ()}, "there must be a layout for every network"),
    ],
)
def test_a_file_that_lacks_something_is_refused(
    changed: dict[str, tuple[object, ...]], problem: str, tmp_path: Path
):
    path = tmp_path / "ccl_sweep.json"
    sweep_file.write(path, msgspec.structs.replace(SWEEP, **changed))
    with pytest.raises(UsageError, match=problem):
        read_sweep(path)


def test_the_file_has_the_links_of_every_network():
    content = msgspec.json.decode(msgspec.json.encode(SWEEP))
    assert content["layouts"][1]["ring"][1] == [1, 0, 2]


def test_the_summary_has_a_line_for_each_row(tmp_path: Path):
    with write_summary(tmp_path / "ccl_summary.csv", SWEEP).open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(SWEEP.rows)
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
def test_what_cannot_be_is_a_fault(wrong: Row, fault: str):
    assert fault in verdict((*SWEEP.rows, wrong))[1]
    assert verdict(SWEEP.rows) == [
        f"{len(SWEEP.rows)} all-reduces: every sum right bit by bit, none below its bound"
    ]


def test_the_sum_is_over_ranks_and_over_the_cubes_that_take_part():
    given = [numbers(rank, 2, 5) for rank in range(3)]
    by_hand = sum(each.astype(np.int64) for each in given).sum(axis=0)
    assert np.array_equal(combined(given), by_hand.astype(np.int32))
    assert not np.array_equal(given[0], given[1])


def test_a_line_of_the_table_has_the_time_and_what_the_forms_say(
    capsys: pytest.CaptureFixture[str],
):
    print_table(SWEEP)
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


def test_the_figures_of_the_other_simulator_stand_beside_what_explains_them():
    assert "ASTRA-sim        8 NPUs  1 MiB    64.44 us, explained 64.46 us" in reference_lines()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--sips", "2"], "--sips is not an option of the study milestone-1h-ccl"),
        (
            ["--max-bytes", "8"],
            "--max-bytes 8: the sizes of the sweep over kinds of queues start at 1024",
        ),
    ],
)
def test_what_means_nothing_to_the_study_is_refused_by_name(
    words: list[str],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    assert main(["--bench", "milestone-1h-ccl", *words]) == 2
    assert problem in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_sizes_are_named_as_people_say_them():
    assert [size_label(nbytes) for nbytes in (256, 1024, 65_536, 1 << 20)] == [
        "256 B",
        "1 KiB",
        "64 KiB",
        "1 MiB",
    ]
