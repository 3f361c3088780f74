"""The heat map of a sweep of two keys: a cell a point, its number in it if there is room."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from kernbench.studies.plots import DPI, GREY, VERMILION
from kernbench.sweep.figures_axes import (
    AXES_PX,
    CHARACTER_PX,
    LINE_PX,
    NO_RESULT,
    is_wide,
    key_scale,
    level_ticks,
    metric_format,
    plain,
    ticks,
    titled_figure,
)
from kernbench.sweep.figures_finding import best_finding
from kernbench.sweep.figures_quantity import Quantity, key_label, short
from kernbench.sweep.sweep_table import SweepTable

_CELLS_WITH_NUMBERS = 200
_HEIGHT_IN = 6.5
_HEIGHT_PX = 0.78 * _HEIGHT_IN * DPI
"""Estimated height of the axes."""
_HATCH = "////"
_LARGE, _SMALL = 12, 9
"""Sizes of the numbers in the cells."""
_FEW = 15
"""Rows with large numbers at most."""

Rgba = tuple[float, float, float, float]


def heatmap(table: SweepTable, metric: Quantity) -> Figure:
    """The metric over both keys; points without a number are hatched, the best one is framed."""
    columns, rows = (table.values(key) for key in table.keys)
    figure = titled_figure(_HEIGHT_IN, best_finding(table, metric))
    axes = figure.subplots()
    points = {row.keys: metric.numbers[index] for index, row in enumerate(table.rows)}
    cells = [[points[column, row] for column in columns] for row in rows]
    # The type also turns None into NaN.
    numbers = np.array(cells, dtype=np.float64)
    # The best cells are the bright ones.
    colours = colormaps["viridis" if metric.more_is_better else "viridis_r"]
    is_log = is_wide(metric.present)
    norm = (LogNorm if is_log else Normalize)(min(metric.present), max(metric.present))
    image = axes.imshow(numbers, cmap=colours, norm=norm, aspect="auto", origin="lower")
    for place in np.argwhere(np.isnan(numbers)).tolist():
        _cell(axes, place, hatch=_HATCH, facecolor="white", edgecolor=GREY, linewidth=0)
    best = metric.best(metric.rows(range(len(table.rows))))
    place = [rows.index(table.rows[best].keys[1]), columns.index(table.rows[best].keys[0])]
    _cell(axes, place, fill=False, edgecolor=VERMILION, linewidth=3, clip_on=False, zorder=3)
    _write(axes, numbers, lambda number: colours(norm(number)))
    across = [(index + 0.5) / len(columns) * AXES_PX for index in range(len(columns))]
    upward = [(index + 0.5) / len(rows) * _HEIGHT_PX for index in range(len(rows))]
    ticks(axes.xaxis, range(len(columns)), key_scale(columns).labels, across, can_turn=True)
    level_ticks(axes.yaxis, range(len(rows)), key_scale(rows).labels, upward)
    axes.set_xlabel(plain(key_label(table.keys[0])))
    axes.set_ylabel(plain(key_label(table.keys[1])))
    bar = figure.colorbar(image, ax=axes, pad=0.02)
    bar.set_label(plain(metric.label))
    metric_format(bar.ax.yaxis, metric.present)
    handles = [Patch(fill=False, edgecolor=VERMILION, linewidth=2, label=_best_label(metric))]
    if len(metric.present) < len(table.rows):
        absent = Patch(hatch=_HATCH, facecolor="white", edgecolor=GREY, label=NO_RESULT)
        handles.append(absent)
    figure.legend(handles=handles, loc="outside lower right", frameon=False, ncols=2)
    return figure


def _best_label(metric: Quantity) -> str:
    return "greatest" if metric.more_is_better else "least"


def _cell(axes: Axes, place: Sequence[int], **style: Any) -> None:
    axes.add_patch(Rectangle((place[1] - 0.5, place[0] - 0.5), 1, 1, **style))


def _write(axes: Axes, numbers: NDArray[np.float64], colour: Callable[[float], Rgba]) -> None:
    """Write the numbers into the cells, if all cells have room for theirs."""
    texts = {
        (row, column): short(float(numbers[row, column]))
        for row, column in np.argwhere(~np.isnan(numbers)).tolist()
    }
    rows, columns = numbers.shape
    room, longest = AXES_PX / columns / CHARACTER_PX - 1, max(map(len, texts.values()))
    if numbers.size > _CELLS_WITH_NUMBERS or longest > room or _HEIGHT_PX / rows < LINE_PX:
        return
    for (row, column), text in texts.items():
        red, green, blue, _ = colour(float(numbers[row, column]))
        is_bright = 0.3 * red + 0.59 * green + 0.11 * blue > 0.5
        axes.text(
            column,
            row,
            text,
            ha="center",
            va="center",
            fontsize=_LARGE if 2 * longest < room and rows <= _FEW else _SMALL,
            color="black" if is_bright else "white",
        )
