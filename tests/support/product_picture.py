"""Draws the times of products `x @ w.T` by rows of `x`, and their shares of the bound."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from kernbench.studies.plots import PALE, SEVEN_LOOKS, legend_below, looks, new_figure
from runtime.core.errors import UsageError

PICTURE, RESULTS = "torch_products.png", "torch_products.json"


class ProductTime(NamedTuple):
    """A product of (rows, depth) with a weight (columns, depth), and the larger bound of bytes and
    multiply-adds.
    """

    rows: int
    depth: int
    columns: int
    time_ns: float
    bound_ns: float

    @property
    def weight(self) -> str:
        """The size of the weight, by depth and columns."""
        return f"{self.depth} x {self.columns}"


def read_times(path: Path) -> list[ProductTime]:
    """The products of a results file. Raises `UsageError` if it cannot be read."""
    try:
        rows = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    return [ProductTime(**each) for each in rows]


def write_times(path: Path, times: Sequence[ProductTime]) -> None:
    """Write a results file, a product a line."""
    lines = ",\n".join(json.dumps(each._asdict()) for each in times)
    path.write_text(f"[\n{lines}\n]\n")


def product_picture(times: Sequence[ProductTime]) -> Figure:
    """Two panels by rows: times, and shares of the bound."""
    steepest = max(_steps(times))
    figure = new_figure(
        5.2, f"Twice the rows take at most {steepest:.2f} times as long, for any weight"
    )
    left, right = figure.subplots(1, 2)
    weights = list(dict.fromkeys(each.weight for each in times))
    for weight, (colour, marker) in zip(weights, looks(len(weights), SEVEN_LOOKS), strict=True):
        line = [each for each in times if each.weight == weight]
        rows = [each.rows for each in line]
        look = {"color": colour, "marker": marker, "label": weight}
        left.plot(rows, [each.time_ns / 1e3 for each in line], **look)
        right.plot(rows, [100 * each.bound_ns / each.time_ns for each in line], **look)
    for axes in (left, right):
        # Other numbers of rows are too near to be labelled.
        rows = sorted({each.rows for each in times})
        _by_rows(axes, [each for each in rows if each & (each - 1) == 0])
    left.set(yscale="log", ylabel="time (us)")
    left.yaxis.set_major_formatter("{x:g}")
    left.yaxis.set_minor_formatter("{x:g}")
    right.set(ylim=(0, 100), ylabel="share of the bound by HBM or GEMM (%)")
    legend_below(figure, left.get_legend_handles_labels()[0])
    return figure


def _steps(times: Sequence[ProductTime]) -> list[float]:
    """The times of twice the rows over those of the rows."""
    by_size = {each[:3]: each.time_ns for each in times}
    return [
        by_size[2 * rows, depth, columns] / time_ns
        for (rows, depth, columns), time_ns in by_size.items()
        if (2 * rows, depth, columns) in by_size
    ]


def _by_rows(axes: Axes, rows: Sequence[int]) -> None:
    axes.set(xscale="log", xlabel="rows")
    axes.set_xticks(rows, [str(each) for each in rows])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(alpha=PALE)
