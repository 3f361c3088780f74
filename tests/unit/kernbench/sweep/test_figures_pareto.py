"""The Pareto front of a sweep, against its definition."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from kernbench.sweep.figures import figure
from kernbench.sweep.figures_pareto import front
from kernbench.sweep.figures_quantity import Quantity
from runtime.core.errors import UsageError
from tests.support.sweep_csv import sweep

GBS, CHANNELS = "ucie.bw_gbs", "pe.dma.channels"
SWEPT = {GBS: [64, 128, 256], CHANNELS: [2, 4]}


def _quantity(numbers: Sequence[float], more_is_better: bool) -> Quantity:
    return Quantity("x", "", tuple(numbers), is_time=False, more_is_better=more_is_better)


def _dominates(metrics: Sequence[Quantity], row: int, other: int) -> bool:
    pairs = [(metric, metric.number(row), metric.number(other)) for metric in metrics]
    no_worse = [a >= b if metric.more_is_better else a <= b for metric, a, b in pairs]
    return all(no_worse) and any(a != b for _, a, b in pairs)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1),
    st.booleans(),
    st.booleans(),
)
def test_the_front_is_what_no_other_point_dominates(
    points: list[tuple[int, int]], first_more: bool, second_more: bool
):
    first = _quantity([y for y, _ in points], first_more)
    second = _quantity([x for _, x in points], second_more)
    rows = range(len(points))
    expected = [
        row for row in rows if not any(_dominates((first, second), other, row) for other in rows)
    ]
    found = front(first, second, rows)
    assert sorted(found) == expected
    assert [second.number(row) for row in found] == sorted(second.number(row) for row in found)


def _time(gbs: int, channels: int) -> float:
    return 64e4 / min(gbs, 128) + 1000 / channels


def pareto(*arguments, metric: str, **options) -> Figure:
    return figure(sweep(*arguments, **options), metric, "auto")


def test_the_first_metric_is_upwards_and_the_front_is_a_step_line(tmp_path: Path):
    drawn = pareto(tmp_path, SWEPT, _time, metric=f"time_ns,{GBS}")
    (axes,) = drawn.axes
    others, line = axes.lines
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([64, 128], [10.25, 5.25])
    assert line.get_drawstyle() == "steps-post"
    assert others.get_linestyle() == "None"
    assert sorted(others.get_xdata()) == [64, 128, 256, 256]
    assert axes.get_xlabel() == "ucie.bw_gbs (GB/s), less is better"
    assert axes.get_ylabel() == "simulated time (us), less is better"
    assert drawn.get_suptitle() == (
        "2 of 6 points are on the front: "
        "simulated time 10.2 us at ucie.bw_gbs 64 GB/s to 5.25 us at 128 GB/s"
    )


def test_points_of_the_front_are_labelled_with_their_keys(tmp_path: Path):
    drawn = pareto(tmp_path, SWEPT, _time, metric=f"time_ns,{GBS}")
    assert [text.get_text() for text in drawn.axes[0].texts] == ["64, 4", "128, 4"]
    assert drawn.legends[0].get_title().get_text().endswith(f": {GBS}, {CHANNELS}")


def test_points_of_one_place_share_a_label(tmp_path: Path):
    swept = {**SWEPT, "--algorithm": ["ring", "mesh"]}
    drawn = pareto(tmp_path, swept, lambda a, b, _: _time(a, b), metric=f"time_ns,{GBS}")
    labels = [text.get_text() for text in drawn.axes[0].texts]
    assert labels == ["64, 4, ring and 1 more", "128, 4, ring and 1 more"]


@pytest.mark.parametrize(
    ("signs", "steps"), [("+-", "post"), ("--", "post"), ("-+", "pre"), ("++", "pre")]
)
def test_the_second_metric_decides_which_way_the_line_steps(tmp_path: Path, signs: str, steps: str):
    drawn = pareto(tmp_path, SWEPT, _time, metric=f"{signs[0]}time_ns,{signs[1]}{GBS}")
    (axes,) = drawn.axes
    assert axes.lines[1].get_drawstyle() == f"steps-{steps}"
    assert axes.get_xlabel().endswith("more is better" if steps == "pre" else "less is better")


@pytest.mark.slow
def test_labels_of_a_crowded_front_do_not_overlap(tmp_path: Path):
    drawn = pareto(tmp_path, {"key": range(1, 120)}, lambda key: 1e6 / key, metric="time_ns,key")
    boxes = [text.get_window_extent() for text in drawn.axes[0].texts]
    assert 5 < len(boxes) < 100
    assert all(box.count_overlaps(boxes) == 1 for box in boxes)


def test_points_without_a_number_are_counted(tmp_path: Path):
    drawn = pareto(
        tmp_path, SWEPT, _time, metric=f"time_ns,{GBS}", faults={(64, 4): "out of memory"}
    )
    assert drawn.get_suptitle().startswith("2 of 5 points (1 without result) are on the front")


def test_one_point_that_is_best_in_both_metrics_is_the_finding(tmp_path: Path):
    drawn = pareto(tmp_path, {"key": [1, 2]}, float, metric="time_ns,key")
    assert drawn.get_suptitle() == (
        "key 1 is the best of 2 points in both: simulated time 1 ns, key 1"
    )


def test_metrics_that_no_point_has_together_are_refused(tmp_path: Path):
    more = {"left": lambda key: 1 if key == 1 else "", "right": lambda key: key - 1 or ""}
    with pytest.raises(UsageError, match="no point of the sweep has both left and right"):
        pareto(tmp_path, {"key": [1, 2]}, float, metric="left,right", more=more)
