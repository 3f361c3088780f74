"""The number of keys selects the plot, and what does not fit is refused in a line."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from kernbench.sweep.figures import draw, figure, selected_plot
from runtime.core.errors import UsageError
from tests.support.runs import ROOT
from tests.support.sweep_csv import sweep, write_sweep

SWEEPS = ROOT / "docs/figures/sweeps"
PICTURES = {
    "curve.png": ("curve.csv", "time_ns"),
    "heatmap.png": ("heatmap.csv", "time_ns"),
    "pareto.png": ("heatmap.csv", "time_ns,ucie.bw_gbs"),
    "tornado.png": ("tornado.csv", "time_ns"),
}
"""The committed pictures, with what each is drawn from."""
LARGEST_BYTES = 60_000


@pytest.mark.parametrize(
    ("keys", "is_grid", "metrics", "plot"),
    [
        (1, True, 1, "curve"),
        (2, True, 1, "heatmap"),
        (3, True, 1, "tornado"),
        (8, True, 1, "tornado"),
        (2, False, 1, "curve"),
        (5, False, 1, "curve"),
        (1, True, 2, "pareto"),
        (3, False, 2, "pareto"),
    ],
)
def test_the_number_of_keys_selects_the_plot(keys: int, is_grid: bool, metrics: int, plot: str):
    assert selected_plot("auto", keys=keys, is_grid=is_grid, metrics=metrics) == plot


@pytest.mark.parametrize(
    ("plot", "keys", "is_grid", "metrics", "problem"),
    [
        ("heatmp", 1, True, 1, "--plot 'heatmp' is unknown; did you mean 'heatmap'?"),
        ("curve", 3, True, 1, "--plot curve: it needs 1 or 2 swept keys, not 3"),
        ("curve", 1, True, 2, "--plot curve: it needs 1 metric, not 2"),
        ("heatmap", 1, True, 1, "--plot heatmap: it needs 2 swept keys, not 1"),
        ("heatmap", 2, False, 1, "it needs all combinations of the values"),
        ("tornado", 3, False, 1, "it needs all combinations of the values"),
        ("pareto", 2, True, 1, "it needs 2 metrics, not 1, such as --metric time_ns,COLUMN"),
        ("auto", 2, True, 3, "--plot pareto: it needs 2 metrics, not 3"),
    ],
)
def test_a_plot_that_does_not_fit_is_refused(
    plot: str, keys: int, is_grid: bool, metrics: int, problem: str
):
    with pytest.raises(UsageError) as raised:
        selected_plot(plot, keys=keys, is_grid=is_grid, metrics=metrics)
    assert problem in str(raised.value)


@pytest.mark.parametrize("plot", ["curve", "heatmap", "tornado"])
def test_each_plot_is_drawn_on_request(tmp_path: Path, plot: str):
    table = sweep(tmp_path, {"a": [1, 2], "b": [3, 4]}, lambda a, b: a * b)
    labels = {"curve": "simulated time (ns)", "heatmap": "b", "tornado": ""}
    assert figure(table, "time_ns", plot).axes[0].get_ylabel() == labels[plot]


def test_a_sweep_of_faults_alone_has_no_figure(tmp_path: Path):
    faults = {(1,): "out of memory", (2,): "takes more than 10 s"}
    table = sweep(tmp_path, {"a": [1, 2]}, lambda _: 1, faults=faults)
    problem = "nothing to draw: all 2 points are faults: out of memory"
    with pytest.raises(UsageError, match=problem):
        figure(table, "time_ns", "auto")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "plot"),
    [
        ("time_ns", "curve"),
        ("time_ns", "heatmap"),
        ("time_ns,a", "pareto"),
        ("time_ns", "tornado"),
    ],
)
def test_the_same_csv_gives_the_same_bytes(tmp_path: Path, metric: str, plot: str):
    csv = write_sweep(tmp_path / "sweep.csv", {"a": [1, 2], "b": [3, 4]}, lambda a, b: a * b)
    first, second = (
        draw(csv, tmp_path / f"{number}.png", metric, plot).read_bytes() for number in (1, 2)
    )
    assert first == second
    assert first.startswith(b"\x89PNG")


def test_the_pictures_of_the_documentation_are_those_of_the_committed_tables():
    files = {path.name: path.stat().st_size for path in SWEEPS.iterdir()}
    assert set(files) == set(PICTURES) | {csv for csv, _ in PICTURES.values()}
    assert max(files[name] for name in PICTURES) < LARGEST_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES)
def test_a_committed_picture_is_drawn_from_its_table(tmp_path: Path, name: str):
    csv, metric = PICTURES[name]
    drawn, committed = (
        _thumbnail(path) for path in (draw(SWEEPS / csv, tmp_path / name, metric), SWEEPS / name)
    )
    # Not the bytes: fonts differ between versions of matplotlib.
    assert np.abs(drawn - committed).mean() < 2


def _thumbnail(path: Path) -> NDArray[np.int16]:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("L").resize((120, 65)), dtype=np.int16)


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    csv = write_sweep(tmp_path / "sweep.csv", {"a": [1]}, lambda _: 1)
    for name in list(sys.modules):
        if name.startswith("matplotlib") or name == "kernbench.studies.plots":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("builtins.__import__", _without_matplotlib(__import__))
    with pytest.raises(UsageError, match=r"pip install 'kernbench\[plots\]'"):
        draw(csv, tmp_path / "sweep.png")


def _without_matplotlib(original):
    def imported(name: str, *arguments, **options):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
        return original(name, *arguments, **options)

    return imported
