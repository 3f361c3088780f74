"""The study of algorithms: its points, its measurement, its files and its lines."""

import csv
from pathlib import Path

import msgspec
import numpy as np
import pytest

from kernbench.cli.main import main
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.points.driver import PointOptions, measured_points
from kernbench.studies import results_file
from kernbench.studies.all_reduce import kernel_span
from kernbench.studies.catalogue import AlgorithmFlags
from kernbench.studies.ccl_algorithms.figures import latency
from kernbench.studies.ccl_algorithms.measurement import EXACT, measure, shard
from kernbench.studies.ccl_algorithms.rows import (
    BY_PARTS,
    NAMES,
    RANKS,
    AlgorithmPoint,
    AlgorithmRow,
    held_out_sizes,
    plan_points,
    sizes,
)
from kernbench.studies.ccl_algorithms.study import AlgorithmStudy, findings, print_table
from runtime.ccl.config import load_ccl
from runtime.core.config.config_file import default_file, read_text
from runtime.core.errors import UsageError
from runtime.core.trace import OpRecord
from tests.support.algorithm_rows import results, rows, steps
from tests.support.topologies import variant_text

RESULTS = results()
STUDY = AlgorithmStudy(AlgorithmFlags(max_bytes=131_072))
SMALL = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)


@pytest.mark.parametrize(
    "rows",
    [(), RESULTS.rows[:-1], RESULTS.rows[:1] + RESULTS.rows],
    ids=["none", "one lacks", "one twice"],
)
def test_a_file_that_is_no_full_grid_is_refused(rows: tuple[AlgorithmRow, ...], tmp_path: Path):
    path = tmp_path / "ccl_algorithms.json"
    results_file.write(path, msgspec.structs.replace(RESULTS, rows=rows))
    with pytest.raises(
        UsageError, match="there must be one row for every algorithm, number of ranks and size"
    ):
        STUDY.read(path)


def test_the_csv_file_has_a_line_for_each_row(tmp_path: Path):
    columns = STUDY.csv_columns()
    lines = ([cell(row) for cell in columns.values()] for row in RESULTS.rows)
    with results_file.write_csv(tmp_path / "rows.csv", columns, lines).open(newline="") as file:
        read = list(csv.DictReader(file))
    assert len(read) == len(RESULTS.rows)
    # 3 ranks x (300,000 + 2 x 100) ps.
    assert read[0] == {
        "collective": "all_reduce",
        "algorithm": "ring",
        "grid": "",
        "ranks": "3",
        "cubes": "1",
        "bytes_a_rank": "2",
        "time_ns": "900.6",
        "held_out": "0",
    }


def test_sizes_end_at_the_given_maximum():
    assert list(sizes(2048)) == [2, 128, 512, 2048]
    assert list(sizes(2047)) == [2, 128, 512]


def test_the_sizes_between_those_of_the_selection_are_held_out():
    assert list(held_out_sizes(8192)) == [256, 1024, 4096]
    assert list(held_out_sizes(511)) == []


def test_the_selection_is_made_without_the_rows_that_are_held_out():
    # At 256 B the tree is slow; at the sizes of the selection up to 512 B it is the fastest.
    held_out = rows(ring=steps(300_000, 100), tree=steps(1_500_000, 300))
    held_out = [
        msgspec.structs.replace(row, nbytes=256, held_out=True)
        for row in held_out
        if row.nbytes == 128
    ]
    both = msgspec.structs.replace(RESULTS, rows=(*RESULTS.rows, *held_out))
    assert STUDY.problem(both) == ""
    assert both.of_tables == RESULTS.rows
    lines = list(findings(both.of_tables, both.held_out, load_ccl()))
    selection = list(findings(RESULTS.rows, (), load_ccl()))[:5]
    assert lines[:5] == selection
    # 1,500,000 + 300 x 128 over 300,000 + 100 x 128 ps.
    [line] = [line for line in lines if "at held-out sizes" in line]
    assert "391.8% longer than the fastest algorithm on the mean" in line
    assert "(tree, 3 ranks, 256 B)" in line
    title = latency(both).get_suptitle()
    assert "on average 391.8% slower\nthan the fastest algorithm of each held-out point" in title


def test_a_figure_without_sizes_that_are_held_out_states_no_loss():
    assert latency(RESULTS).get_suptitle() == "All-reduce by size and ranks"


def test_every_algorithm_has_a_point_for_all_ranks_and_sizes():
    points = plan_points(
        read_text(default_file("topology.yaml")), read_text(default_file("ccl.yaml")), 512
    )
    names = {
        collective: {point.algorithm for point in points if point.collective == collective}
        for collective in NAMES
    }
    trees = {"ring", "recursive_doubling"}
    assert names == {
        "all_reduce": {*trees, "ring_naive", "mesh", "tree", "halving_doubling"},
        "reduce": trees,
        "broadcast": trees,
        "all_gather_into_tensor": trees,
        "reduce_scatter_tensor": trees,
        "all_to_all_single": {"ring", "pairwise"},
    }
    # Three sizes; one element has no parts for all ranks.
    # Three sizes, all smaller than those on grids; one element has no parts for all ranks.
    sizes_of = {name: 2 if name in BY_PARTS else 3 for name in NAMES}
    counts = [len(names[name]) * sizes_of[name] for name in NAMES]
    # The one size between 128 and 512 B is held out, and has no baseline.
    held_out = [point for point in points if point.held_out]
    assert {point.nbytes for point in held_out} == {256}
    assert len(held_out) == len(RANKS) * sum(len(each - {"ring_naive"}) for each in names.values())
    points = tuple(point for point in points if not point.held_out)
    assert len(points) == len(set(points)) == len(RANKS) * sum(counts)


def test_integers_are_small_enough_for_sums_without_rounding():
    point = AlgorithmPoint(SMALL, "", "all_reduce", "ring", 8, 8192)
    given = [shard(point, rank).astype(np.int64) for rank in range(8)]
    assert np.abs(np.stack(given)).sum(axis=0).max() <= EXACT
    assert given[0].shape == (1, 4096)
    assert not np.array_equal(given[0], given[1])


def test_a_time_goes_from_the_first_start_to_the_last_end():
    kernels = [
        OpRecord("pe_cpu", "kernel", start_ps, end_ps)
        for start_ps, end_ps in ((120, 900), (100, 700), (130, 800))
    ]
    assert kernel_span(kernels) == (800, 30)


@pytest.mark.parametrize("collective", NAMES)
def test_every_collective_is_measured_and_right(collective: str):
    ccl = read_text(default_file("ccl.yaml"))
    algorithm = "pairwise" if collective == "all_to_all_single" else "recursive_doubling"
    topology = TopologyFile.of(SMALL).on_a_ring(3).text
    row = measure(AlgorithmPoint(topology, ccl, collective, algorithm, 3, 600))
    assert row.faults == []
    assert row.time_ps > 0


def test_every_sum_of_a_point_is_checked():
    of = {
        "topology": SMALL,
        "collective": "all_reduce",
        "algorithm": "ring",
        "ranks": 2,
        "nbytes": 128,
    }
    ccl = read_text(default_file("ccl.yaml"))
    right = measure(AlgorithmPoint(ccl=ccl, **of))
    assert (right.faults, right.skew_ps) == ([], 0)
    wrong = measure(
        AlgorithmPoint(
            ccl=ccl.replace("runtime.ccl.algorithms.ring\n", "tests.support.wrong_collectives\n"),
            **of,
        )
    )
    # One element of each shard is wrong: two PEs of two ranks.
    assert wrong.faults == ["4 elements are wrong"]


def test_rows_are_in_the_order_of_the_points_while_the_longest_point_starts_first(
    capsys: pytest.CaptureFixture[str],
):
    text = read_text(default_file("ccl.yaml"))
    points = tuple(
        AlgorithmPoint(SMALL, text, "all_reduce", "ring", 2, nbytes) for nbytes in (2, 512)
    )
    found = measured_points(STUDY.measurement(), points, PointOptions(procs=1))
    assert [row.nbytes for row in found.values()] == [2, 512]
    assert [line.split()[5] for line in capsys.readouterr().err.splitlines()] == ["512", "2"]


def test_a_wrong_sum_is_a_fault():
    wrong = msgspec.structs.replace(RESULTS.rows[0], wrong=3)
    rows = (wrong, *RESULTS.rows[1:])
    assert STUDY.verdict(msgspec.structs.replace(RESULTS, rows=rows)) == [
        "1 FAULTS",
        "all_reduce ring 3 ranks 2 B: 3 elements are wrong",
    ]
    assert STUDY.verdict(RESULTS) == ["20 collectives: every result right bit by bit"]


def test_the_findings_have_the_selection_its_loss_and_whether_ccl_yaml_has_it():
    lines = list(findings(RESULTS.rows, (), load_ccl()))
    assert lines[3:5] == [
        "      - {up_to_bytes: 1024, algorithm: tree}",
        "      - {algorithm: ring}",
    ]
    worth = {line[24:44].strip(): line[44:] for line in lines[6:8] + lines[8:9]}
    assert worth["this table"] == "always the fastest"
    # 8192 bytes: 100,000 + 300 x 8192 over 300,000 + 100 x 8192 ps.
    assert worth["tree"].endswith("at most 128.5% (tree, 3 ranks, 8192 B)")
    assert lines[-1] == "ccl.yaml                has other tables"


def test_a_line_of_the_table_has_the_times_of_all_algorithms_the_fastest_and_the_chosen_one(
    capsys: pytest.CaptureFixture[str],
):
    print_table(RESULTS.rows)
    [line] = [
        line.split()
        for line in capsys.readouterr().out.splitlines()
        if line.split()[:2] == ["8", "2,048"]
    ]
    # 8 ranks x (300,000 + 100 x 2048) and (100,000 + 300 x 2048) ps.
    assert line == ["8", "2,048", "4,038.4", "5,715.2", "ring", "ring", "0.0"]


def test_a_maximum_that_leaves_nothing_to_simulate_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert main(["--bench", "ccl-algorithms", "--max-bytes", "8"]) == 2
    assert "--max-bytes 8: must be from 128 to 67108864" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
