"""The curve of a sweep: lines, axes, marks of faults, and the finding in its title."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

from kernbench.sweep.figures import figure
from kernbench.sweep.figures_axes import NO_RESULT
from tests.support.sweep_csv import sweep

GBS = "ucie.bw_gbs"


def axes_of(*arguments, metric: str = "time_ns", **options) -> Axes:
    return figure(sweep(*arguments, **options), metric, "curve").axes[0]


def title_of(*arguments, metric: str = "time_ns", **options) -> str:
    return figure(sweep(*arguments, **options), metric, "auto").get_suptitle()


def ticks_of(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_xticklabels()]


def test_the_line_shows_the_metric_against_the_key(tmp_path: Path):
    axes = axes_of(tmp_path, {GBS: [256, 64, 128]}, lambda gbs: 64e4 / gbs)
    (line,) = axes.lines
    assert list(line.get_xdata()) == [64, 128, 256]
    assert list(line.get_ydata()) == [10, 5, 2.5]
    assert axes.get_xlabel() == "ucie.bw_gbs (GB/s)"
    assert axes.get_ylabel() == "simulated time (us)"
    assert axes.get_xscale() == "log"
    assert ticks_of(axes) == ["64", "128", "256"]


def test_two_keys_are_a_line_for_each_value_of_the_second(tmp_path: Path):
    axes = axes_of(tmp_path, {GBS: [64, 128], "--algorithm": ["ring", "_mesh", "$t$"]}, _spread)
    assert [line.get_linestyle() for line in axes.lines] == ["-"] * 3
    legend = axes.get_legend()
    assert legend is not None
    assert legend.get_title().get_text() == "--algorithm"
    assert [text.get_text() for text in legend.get_texts()] == ["ring", "_mesh", r"\$t\$"]


def _spread(gbs: int, name: str) -> float:
    return 1e6 / gbs + len(name)


def test_words_stand_at_equal_distances(tmp_path: Path):
    axes = axes_of(tmp_path, {"--algorithm": ["ring", "mesh", "tree"]}, len)
    assert list(axes.lines[0].get_xdata()) == [0, 1, 2]
    assert axes.lines[0].get_linestyle() == ":"
    assert ticks_of(axes) == ["ring", "mesh", "tree"]


def test_faults_are_marked_at_the_axis_and_break_the_line(tmp_path: Path):
    faults = {(64,): "out of memory", (256,): "takes more than 10 s"}
    axes = axes_of(tmp_path, {GBS: [32, 64, 128, 256]}, float, faults=faults)
    line, marks = axes.lines
    assert np.isnan(line.get_ydata()).tolist() == [False, True, False, True]
    assert list(marks.get_xdata()) == [64, 256]
    assert max(marks.get_ydata()) < 0.05
    assert marks.get_transform() == axes.get_xaxis_transform()
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [NO_RESULT]


def test_the_ticks_of_a_zip_sweep_show_all_keys(tmp_path: Path):
    swept = {GBS: [256, 64], "--algorithm": ["mesh", "ring"]}
    axes = axes_of(tmp_path, swept, _spread, is_zip=True)
    assert list(axes.lines[0].get_xdata()) == [64, 256]
    assert ticks_of(axes) == ["64\nring", "256\nmesh"]
    assert axes.get_xlabel() == "ucie.bw_gbs (GB/s)\n--algorithm"


def test_a_zip_sweep_that_repeats_values_of_the_first_key_has_equal_distances(tmp_path: Path):
    swept = {GBS: [64, 64, 128], "--algorithm": ["ring", "mesh", "ring"]}
    axes = axes_of(tmp_path, swept, _spread, is_zip=True)
    assert list(axes.lines[0].get_xdata()) == [0, 1, 2]


def test_many_values_have_few_ticks_and_many_lines_few_entries(tmp_path: Path):
    axes = axes_of(tmp_path, {"a": range(1, 101), "b": range(40)}, lambda a, b: a + b + 1)
    legend = axes.get_legend()
    assert legend is not None
    assert len(axes.lines) == 40
    assert len(legend.get_texts()) <= 24
    assert len(ticks_of(axes)) < 20


def test_a_metric_of_different_magnitudes_has_a_logarithmic_axis(tmp_path: Path):
    assert axes_of(tmp_path, {"a": [1, 2]}, lambda a: 100**a).get_yscale() == "log"
    flat = axes_of(tmp_path, {"a": [1, 2]}, lambda a: 100 + a)
    assert flat.get_yscale() == "linear"
    assert flat.get_ylim()[0] > 90
    assert axes_of(tmp_path, {"a": [1, 2]}, float).get_ylim()[0] == 0


@pytest.mark.parametrize(
    ("times", "finding"),
    [
        ([4, 2, 1], "4x faster from 64 to 256 GB/s of ucie.bw_gbs"),
        ([4, 2, 2], "2x faster from 64 to 128 GB/s of ucie.bw_gbs; nothing gained beyond 128"),
        ([4, 2, 3], "2x faster from 64 to 128 GB/s of ucie.bw_gbs; then 1.5x slower to 256"),
        ([2, 2, 3], "1.5x slower from 64 to 256 GB/s of ucie.bw_gbs"),
        ([2, 2.01, 2], "simulated time 2 ns with all values of ucie.bw_gbs"),
        ([2, 3, 2], "least simulated time 2 ns with ucie.bw_gbs 64: 1.5x faster than with 128"),
    ],
)
def test_the_title_states_what_the_key_gains(tmp_path: Path, times: list[float], finding: str):
    values = dict(zip((64, 128, 256), times, strict=True))
    assert title_of(tmp_path, {GBS: [64, 128, 256]}, values.__getitem__) == finding


def test_the_title_of_a_zip_sweep_has_the_values_of_all_keys(tmp_path: Path):
    swept = {GBS: [256, 64], "pe.dma.channels": [8, 2]}
    title = title_of(tmp_path, swept, lambda gbs, _: 512 / gbs, is_zip=True)
    assert title == "4x faster from 64, 2 to 256, 8 of ucie.bw_gbs, pe.dma.channels"


def test_the_title_of_many_keys_lists_the_first_ones(tmp_path: Path):
    swept = {f"key{number}": [2, 4] for number in range(6)}
    title = title_of(tmp_path, swept, lambda *keys: keys[0], is_zip=True)
    assert title == "2x slower from 2, 2, 2, 2, … to 4, 4, 4, 4, … of key0, key1, key2, key3, …"


def test_the_title_of_a_rate_and_of_a_percentage(tmp_path: Path):
    more = {"algbw_gbs": lambda a: a, "memory_stall_percent": lambda a: 100 / a}
    swept = {"a": [2, 4, 8]}
    title = title_of(tmp_path, swept, float, metric="algbw_gbs", more=more)
    assert title == "algbw 4x higher from 2 to 8 of a"
    title = title_of(tmp_path, swept, float, metric="memory_stall_percent", more=more)
    assert title == "memory stall from 50 to 12.5 % from 2 to 8 of a"


def test_the_title_of_words_names_the_best_and_the_worst(tmp_path: Path):
    title = title_of(tmp_path, {"--algorithm": ["ring", "mesh", "trees"]}, lambda a: 2.0 ** len(a))
    least = "least simulated time 16 ns with --algorithm ring"
    assert title == f"{least}: 2x faster than with trees"


def test_a_single_point_is_a_figure(tmp_path: Path):
    title = title_of(tmp_path, {GBS: [64]}, float)
    assert title == "simulated time 64 ns with ucie.bw_gbs 64, the only result"
