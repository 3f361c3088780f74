"""The selection of an algorithm by size: the rule on computed times, and the shipped table."""

import pytest

from kernbench.studies.catalogue import AlgorithmFlags
from kernbench.studies.ccl_algorithms.measurement import measure
from kernbench.studies.ccl_algorithms.rows import AlgorithmRow, algorithms, plan_points
from kernbench.studies.ccl_algorithms.selection import (
    GAIN,
    as_yaml,
    candidates,
    loss,
    selected_table,
    tables_of,
)
from kernbench.studies.ccl_algorithms.study import AlgorithmStudy
from runtime.ccl.config import load_ccl, parse_ccl
from runtime.ccl.selection import CallShape, Choice, matching_row
from runtime.core.config.config_file import default_file, read_text
from tests.support.algorithm_rows import SIZES, Time, rows, steps
from tests.support.runs import ROOT

FIGURES = ROOT / "docs/figures"


def selected(**times: Time) -> list[tuple[str, int | None]]:
    return [(row.algorithm, row.up_to_bytes) for row in selected_table(rows(**times))]


def of_sizes(*times_ps: float) -> Time:
    return lambda ranks, nbytes: ranks * times_ps[SIZES.index(nbytes)]


def measured() -> tuple[AlgorithmRow, ...]:
    """The committed rows, on which the selection of the shipped `ccl.yaml` rests."""
    return AlgorithmStudy(AlgorithmFlags()).read(FIGURES / "ccl_algorithms.json").of_tables


def test_an_algorithm_that_is_always_fastest_has_no_limit():
    assert selected(ring=steps(100, 1), tree=steps(200, 2)) == [("ring", None)]


def test_a_row_ends_where_the_means_cross_to_two_binary_digits():
    # In logarithms tree is ahead by ln(351.2 / 253.6) = 0.326 at 512 B and behind by
    # ln(714.4 / 504.8) = 0.347 at 2048 B. Straight lines cross after 0.484 of the two powers of two
    # between these sizes, at 1002 B, nearest to 4 x 256 B.
    assert selected(ring=steps(300_000, 100), tree=steps(100_000, 300)) == [
        ("tree", 1024),
        ("ring", None),
    ]
    # Ahead by ln(1.5), behind by ln(2): 0.369 of two powers of two, at 854 B.
    assert selected(ring=of_sizes(9, 9, 150, 100, 1), tree=of_sizes(1, 1, 100, 200, 9)) == [
        ("tree", 768),
        ("ring", None),
    ]


def test_a_row_ends_before_the_first_measured_size_that_is_not_its_own():
    # The means cross at 512 x 0.97 bytes, and 512 bytes belong to ring, which is 3 % faster there.
    assert selected(
        ring=of_sizes(200, 200, 100, 100, 100), tree=of_sizes(100, 100, 103, 200, 200)
    ) == [
        ("tree", 384),
        ("ring", None),
    ]


@pytest.mark.parametrize(
    ("gain", "table"), [(1.019, [("ring", None)]), (1.021, [("tree", 2), ("ring", None)])]
)
def test_a_row_must_gain_more_than_2_percent(gain: float, table: list[tuple[str, int | None]]):
    assert (
        selected(
            ring=of_sizes(1e6 * gain, 1e6, 1e6, 1e6, 1e6), tree=of_sizes(1e6, 2e6, 2e6, 2e6, 2e6)
        )
        == table
    )


def test_algorithms_within_2_percent_do_not_take_turns():
    ring, tree = of_sizes(2000, 1000, 1010, 1000, 1000), of_sizes(1000, 1015, 1000, 1010, 2000)
    # One change is needed. At 128 B it costs 1 %, of ring at 512 B; at 2048 B it costs 1.5 %, of
    # tree at 128 B.
    assert selected(ring=ring, tree=tree) == [("tree", 96), ("ring", None)]


def test_among_equally_many_rows_even_small_gains_count():
    # The change at 512 B costs nothing. Ahead by ln(1.015), behind by ln(1.01): 0.599 of two powers
    # of two, at 294 B.
    ring, tree = of_sizes(2000, 1015, 1000, 1000, 1000), of_sizes(1000, 1000, 1010, 1010, 2000)
    assert selected(ring=ring, tree=tree) == [("tree", 256), ("ring", None)]


def test_of_equally_fast_algorithms_the_first_is_selected():
    equal = steps(100, 1)
    assert selected(tree=equal, ring=equal) == [("tree", None)]


def test_ranks_with_different_fastest_algorithms_have_tables_of_their_own():
    table = selected_table(
        rows(
            ring=lambda ranks, _: 1000 * ranks,
            tree=lambda ranks, nbytes: 500 * ranks if ranks == 3 or nbytes == 2 else 1500 * ranks,
        )
    )
    # For 8 ranks, tree is ahead by ln(2) at 2 B and behind by ln(1.5) at 128 B: 0.631 of six powers
    # of two, at 27.6 B, nearest to 3 x 8 B.
    assert table == (
        Choice(algorithm="tree", up_to_ranks=3),
        Choice(algorithm="tree", up_to_bytes=24),
        Choice(algorithm="ring"),
    )


def test_ranks_count_by_factors_where_they_share_a_table():
    # Twice as fast on 3 ranks outweighs 1.02 times as slow on 8, though that is more picoseconds.
    assert selected(
        ring=lambda ranks, _: 1000 * ranks,
        tree=lambda ranks, _: 500 * ranks if ranks == 3 else 1020 * ranks,
    ) == [("tree", None)]


def test_a_loss_is_against_the_fastest_algorithm_of_each_point():
    of = rows(
        ring=lambda *_: 100, tree=lambda ranks, nbytes: 150 if (ranks, nbytes) == (8, 512) else 100
    )
    lost = loss(of, [Choice(algorithm="tree")])
    assert (lost.worst, lost.mean) == (pytest.approx(0.5), pytest.approx(0.5 / 10))
    assert (lost.worst_row.ranks, lost.worst_row.nbytes) == (8, 512)


def test_the_printed_table_is_read_by_the_file_and_chooses_the_same():
    table = selected_table(rows(ring=steps(300_000, 100), tree=steps(100_000, 300)))
    text = read_text(default_file("ccl.yaml"))
    before, _, behind = text.partition("selection:")
    first, *others = as_yaml({"all_reduce": table})
    lines = "\n".join([first, "  default: ring", *others])
    ccl = parse_ccl(
        f"{before}{lines}\n\nalgorithms:{behind.partition('algorithms:')[2]}", "ccl.yaml"
    )
    for nbytes in (1, 1024, 1025, 1 << 26):
        row = matching_row(table, CallShape(nbytes, 8))
        assert row is not None
        assert ccl.choose("auto", "all_reduce", CallShape(nbytes, 8)) == row.algorithm


@pytest.mark.golden
def test_the_shipped_selection_is_what_the_measured_times_give():
    ccl = load_ccl()
    assert ccl.file.selection is not None
    assert dict(ccl.file.selection.by_size) == tables_of(measured())


@pytest.mark.golden
def test_the_measured_times_cover_all_interchangeable_algorithms():
    text, ccl = read_text(default_file("topology.yaml")), read_text(default_file("ccl.yaml"))
    points = {
        (point.collective, point.algorithm, point.ranks, point.nbytes)
        for point in plan_points(text, ccl, AlgorithmFlags().max_bytes)
    }
    rows = AlgorithmStudy(AlgorithmFlags()).read(FIGURES / "ccl_algorithms.json").rows
    assert {(row.collective, row.algorithm, row.ranks, row.nbytes) for row in rows} == points
    of_all_reduce = algorithms(load_ccl(), text, "all_reduce")
    assert "ring" in of_all_reduce
    assert not {"intercube", "hierarchical", "point_to_point"} & set(of_all_reduce)


@pytest.mark.golden
def test_the_documentation_has_the_losses_at_sizes_that_the_selection_was_not_made_for():
    held_out = AlgorithmStudy(AlgorithmFlags()).read(FIGURES / "ccl_algorithms.json").held_out
    on_rings = {row.nbytes for row in measured() if not row.grid}
    assert not {row.nbytes for row in held_out} & on_rings
    tables, text = tables_of(measured()), (ROOT / "docs/internals/collective-forms.md").read_text()
    for collective in dict.fromkeys(row.collective for row in held_out):
        lost = loss(candidates(held_out, collective), tables[collective])
        mean, worst = (f"{100 * share:.1f} %" for share in (lost.mean, lost.worst))
        assert f"| {collective} | {mean} | {worst} |" in text


@pytest.mark.golden
@pytest.mark.slow
def test_times_measured_now_are_within_the_gain_of_those_in_the_file():
    text, ccl = read_text(default_file("topology.yaml")), read_text(default_file("ccl.yaml"))
    stored = {
        (row.collective, row.algorithm): row.time_ps
        for row in measured()
        if (row.ranks, row.nbytes) == (2, 8192)
    }
    for point in plan_points(text, ccl, 8192):
        if (point.ranks, point.nbytes) == (2, 8192):
            row = measure(point)
            assert row.faults == []
            time_ps = stored[row.collective, row.algorithm]
            assert row.time_ps == pytest.approx(time_ps, rel=GAIN), point
