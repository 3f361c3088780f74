"""The tornado of a sweep: the effect of each key, by its definition."""

from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from kernbench.sweep.figures import figure
from kernbench.sweep.figures_quantity import quantities
from kernbench.sweep.figures_tornado import Effect, effects
from kernbench.sweep.sweep_table import SweepTable
from runtime.core.errors import UsageError
from tests.support.sweep_csv import sweep

SWEPT = {"small": [1, 2], "--word": ["x", "y"], "large": [1, 2, 3], "none": [1, 2]}


def _time(small: int, word: str, large: int, _: int) -> float:
    # Not monotone in `large`: the value in the middle is the greatest.
    return 100 + small + 10 * (word == "x") + {1: 0, 2: 300, 3: 100}[large]


def effects_of(table: SweepTable) -> list[Effect]:
    (metric,) = quantities(table, "time_ns")
    return effects(table, metric)


def test_the_effect_of_a_key_is_the_range_of_its_means(tmp_path: Path):
    # The mean over the other keys: 100 + 1.5 of `small` + 5 of `--word` + 400/3 of `large`.
    bars = effects_of(sweep(tmp_path, SWEPT, _time))
    assert [(bar.key, bar.low, bar.high) for bar in bars[:3]] == [
        ("large", 1, 2),
        ("--word", "y", "x"),
        ("small", 1, 2),
    ]
    assert [bar.size for bar in bars] == pytest.approx([300, 10, 1, 0])
    assert bars[0].least == pytest.approx(106.5)


def test_a_fault_leaves_its_line_out_of_the_means(tmp_path: Path):
    swept, faults = {"a": [1, 2], "b": [1, 2, 3]}, {(1, 3): "out of memory"}
    by_key = {
        bar.key: bar
        for bar in effects_of(sweep(tmp_path, swept, lambda a, b: 10 * a + 100 * b, faults=faults))
    }
    # Of `a` without b = 3, of `b` without a = 1.
    assert (by_key["a"].least, by_key["a"].greatest) == (160, 170)
    assert (by_key["b"].least, by_key["b"].greatest) == (120, 320)


def test_bars_are_sorted_by_effect_with_their_ends_and_differences(tmp_path: Path):
    (axes,) = figure(sweep(tmp_path, SWEPT, _time), "time_ns", "auto").axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "large",
        "--word",
        "small",
        "none",
    ]
    # The first bar is on top.
    assert axes.get_ylim()[0] > axes.get_ylim()[1]
    widths = [bar.get_width() for container in axes.containers for bar in container]
    assert widths == pytest.approx([300, 10, 1, 0])
    assert [text.get_text() for text in axes.texts][:3] == ["1", "2", "300 ns (3.8x)"]
    assert axes.texts[-1].get_text() == "no effect"
    assert axes.get_xlabel().startswith("mean simulated time (ns) over all values of the other")


def test_long_names_and_values_do_not_overlap(tmp_path: Path):
    swept = {"k" * 60: ["x" * 50, "y" * 40], "b": ["z" * 30, "w"]}
    drawn = figure(sweep(tmp_path, swept, lambda a, b: len(a) * 100 + len(b)), "time_ns", "tornado")
    FigureCanvasAgg(drawn).draw()
    (axes,) = drawn.axes
    texts = [*axes.texts, *axes.get_yticklabels()]
    boxes = [text.get_window_extent() for text in texts]
    assert len(boxes) == 8
    assert all(box.count_overlaps(boxes) == 1 for box in boxes)


def test_the_title_names_the_largest_and_the_least_effect(tmp_path: Path):
    title = figure(sweep(tmp_path, SWEPT, _time), "time_ns", "tornado").get_suptitle()
    assert title.replace("\n", " ") == (
        "large changes the simulated time most: 300 ns (3.8x) from 1 to 2; none has no effect"
    )


def test_without_any_effect_the_title_has_the_mean(tmp_path: Path):
    title = figure(sweep(tmp_path, SWEPT, lambda *_: 5), "time_ns", "tornado").get_suptitle()
    assert title == "simulated time 5 ns in the mean, which no key changes"


def test_faults_on_every_line_leave_nothing_to_compare(tmp_path: Path):
    swept, faults = {"a": [1, 2], "b": [1, 2]}, {(1, 1): "out of memory", (2, 2): "out of memory"}
    table = sweep(tmp_path, swept, lambda a, b: a + b, faults=faults)
    with pytest.raises(UsageError, match="a tornado of simulated time needs, for a key, results"):
        figure(table, "time_ns", "tornado")


def test_eight_keys_are_eight_bars(tmp_path: Path):
    swept = {f"key{number}": [1, 2] for number in range(8)}
    (axes,) = figure(sweep(tmp_path, swept, lambda *keys: sum(keys)), "time_ns", "auto").axes
    assert len(axes.get_yticks()) == 8
