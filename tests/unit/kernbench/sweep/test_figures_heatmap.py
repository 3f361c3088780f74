"""The heat map of a sweep: cells, numbers, hatches, frame, colours."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from kernbench.sweep.figures import figure
from tests.support.sweep_csv import sweep

SWEPT = {"ucie.bw_gbs": [64, 128, 256], "--algorithm": ["ring", "mesh"]}


def heatmap(*arguments, metric: str = "time_ns", **options) -> Figure:
    return figure(sweep(*arguments, **options), metric, "heatmap")


def _time(gbs: int, algorithm: str) -> float:
    return 64e4 / gbs + 1000 * (algorithm == "mesh")


def numbers_in(drawn: Figure) -> list[str]:
    return [text.get_text() for text in drawn.axes[0].texts]


def test_a_cell_has_the_colour_and_the_number_of_its_point(tmp_path: Path):
    drawn = heatmap(tmp_path, SWEPT, _time)
    axes = drawn.axes[0]
    expected = [[10.0, 5.0, 2.5], [11.0, 6.0, 3.5]]
    assert np.array(axes.images[0].get_array()).tolist() == expected
    assert numbers_in(drawn) == ["10", "5", "2.5", "11", "6", "3.5"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("ucie.bw_gbs (GB/s)", "--algorithm")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["64", "128", "256"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ring", "mesh"]
    assert drawn.axes[1].get_ylabel() == "simulated time (us)"


def test_faults_are_hatched_and_the_best_point_is_framed(tmp_path: Path):
    faults = {(64, "ring"): "out of memory", (256, "mesh"): "out of memory"}
    drawn = heatmap(tmp_path, SWEPT, _time, faults=faults)
    patches = drawn.axes[0].patches
    hatched = [patch.get_xy() for patch in patches if patch.get_hatch()]
    framed = [patch.get_xy() for patch in patches if not patch.get_hatch()]
    assert hatched == [(-0.5, -0.5), (1.5, 0.5)]
    assert framed == [(1.5, -0.5)]
    assert len(numbers_in(drawn)) == 4
    entries = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert entries == ["least", "no result"]


def test_more_is_better_for_a_rate(tmp_path: Path):
    more = {"algbw_gbs": lambda gbs, _: gbs}
    drawn = heatmap(tmp_path, SWEPT, _time, metric="algbw_gbs", more=more)
    finding = "greatest algbw 256 GB/s with ucie.bw_gbs 256, --algorithm ring"
    assert drawn.get_suptitle() == f"{finding}: algbw 4x higher than with 64, ring"
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["greatest"]


@pytest.mark.parametrize(("metric", "best", "worst"), [("time_ns", 2.5, 11), ("+time_ns", 11, 2.5)])
def test_the_best_cells_are_bright(tmp_path: Path, metric: str, best: float, worst: float):
    image = heatmap(tmp_path, SWEPT, _time, metric=metric).axes[0].images[0]
    assert sum(image.to_rgba(best)[:3]) > sum(image.to_rgba(worst)[:3])


@pytest.mark.parametrize("shape", [(20, 30), (2, 60), (60, 2)])
def test_cells_without_room_have_no_numbers(tmp_path: Path, shape: tuple[int, int]):
    swept = {"a": range(shape[0]), "b": range(shape[1])}
    assert numbers_in(heatmap(tmp_path, swept, lambda a, b: 1111 + a * b)) == []


def test_numbers_of_different_magnitudes_have_logarithmic_colours(tmp_path: Path):
    drawn = heatmap(tmp_path, {"a": [1, 2], "b": [1, 2]}, lambda a, b: 10.0 ** (a + b))
    assert isinstance(drawn.axes[0].images[0].norm, LogNorm)


def test_a_grid_of_equal_numbers_is_a_figure(tmp_path: Path):
    drawn = heatmap(tmp_path, SWEPT, lambda *_: 7)
    assert drawn.get_suptitle() == (
        "simulated time 7 ns with all values of ucie.bw_gbs, --algorithm"
    )
