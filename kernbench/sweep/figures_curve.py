"""The curve of a sweep: the metric against the values of one key, a line for each of a second."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from kernbench.studies.plots import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from kernbench.sweep.figures_axes import (
    NO_RESULT,
    KeyScale,
    key_scale,
    metric_axis,
    plain,
    titled_figure,
    value_text,
    zip_scale,
)
from kernbench.sweep.figures_finding import best_finding, curve_finding
from kernbench.sweep.figures_quantity import Quantity, key_label
from kernbench.sweep.sweep_table import SweepTable

_STYLES = (
    (BLUE, "o"),
    (ORANGE, "s"),
    (GREEN, "^"),
    (PURPLE, "D"),
    (SKY, "v"),
    ("black", "P"),
)
"""Colour and marker of each line; of more lines, colours of a map of colours."""
_LEGEND_LINES = 24
_HEIGHT_IN, _KEY_IN = 6.0, 0.36
_ABSENT_HEIGHT = 0.025
"""Height of the marks of points without a number, as a share of the axes."""
_LARGE, _SMALL = 7.0, 3.0
"""Sizes of markers."""


def curve(table: SweepTable, metric: Quantity) -> Figure:
    """The metric of one key, of two keys, or of a zip sweep."""
    is_zip = not table.is_grid
    if is_zip:
        scale, lines = zip_scale(table.rows), [list(range(len(table.rows)))]
    else:
        values = table.values(table.keys[0])
        scale = key_scale(values)
        lines = _lines_of(table)
    # Ticks and label of a zip sweep have a line for each key.
    height_in = _HEIGHT_IN + is_zip * _KEY_IN * (len(table.keys) - 1)
    figure = titled_figure(height_in, _finding(table, metric, scale, lines))
    axes = figure.subplots()
    scale.draw(axes)
    metric_axis(axes, metric, along="y")
    axes.set_xlabel(plain("\n".join(map(key_label, table.keys if is_zip else table.keys[:1]))))
    handles = _draw(axes, table, metric, scale, lines)
    if any(number is None for number in metric.numbers):
        handles.append(_mark_absent(axes, metric, scale, lines))
    if handles:
        title = plain(key_label(table.keys[1])) if len(lines) > 1 else None
        columns = 2 if len(handles) > _LEGEND_LINES // 2 else 1
        axes.legend(
            handles=handles,
            labels=[str(handle.get_label()) for handle in handles],
            title=title,
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
            frameon=False,
            ncols=columns,
        )
    return figure


def _lines_of(table: SweepTable) -> list[list[int]]:
    """The rows of each value of the second key, in the order of the values of the first."""
    rows = {row.keys: index for index, row in enumerate(table.rows)}
    first = table.values(table.keys[0])
    if len(table.keys) == 1:
        return [[rows[(value,)] for value in first]]
    return [[rows[value, second] for value in first] for second in table.values(table.keys[1])]


def _draw(
    axes: Axes,
    table: SweepTable,
    metric: Quantity,
    scale: KeyScale,
    lines: Sequence[Sequence[int]],
) -> list[Line2D]:
    """Draw the lines; returns the entries of the legend, none for a single line."""
    few = len(lines) <= len(_STYLES)
    shades = colormaps["viridis"]
    every = -(-len(lines) // _LEGEND_LINES)
    handles: list[Line2D] = []
    for number, rows in enumerate(lines):
        colour, marker = _STYLES[number] if few else (shades(0.92 * number / len(lines)), "o")
        points = sorted(zip(scale.positions, rows, strict=True))
        numbers = [metric.numbers[row] for _, row in points]
        (line,) = axes.plot(
            [position for position, _ in points],
            [float("nan") if each is None else each for each in numbers],
            color=colour,
            marker=marker,
            # There is nothing between two words.
            linestyle="-" if scale.is_numeric else ":",
            markersize=_LARGE if few and len(points) <= 40 else _SMALL,
        )
        if len(lines) > 1 and number % every == 0:
            line.set_label(value_text(table.rows[rows[0]].keys[1]))
            handles.append(line)
    return handles


def _mark_absent(
    axes: Axes, metric: Quantity, scale: KeyScale, lines: Sequence[Sequence[int]]
) -> Line2D:
    """Mark at the axis the values without a number; returns the entry of the legend."""
    absent = {
        position
        for rows in lines
        for position, row in zip(scale.positions, rows, strict=True)
        if metric.numbers[row] is None
    }
    (marks,) = axes.plot(
        sorted(absent),
        [_ABSENT_HEIGHT] * len(absent),
        transform=axes.get_xaxis_transform(),
        color=VERMILION,
        marker="x",
        markersize=9,
        markeredgewidth=2.5,
        linestyle="",
        clip_on=False,
        zorder=5,
        label=NO_RESULT,
    )
    return marks


def _finding(
    table: SweepTable, metric: Quantity, scale: KeyScale, lines: Sequence[Sequence[int]]
) -> str:
    if len(lines) > 1:
        return best_finding(table, metric)
    order = [row for _, row in sorted(zip(scale.positions, lines[0], strict=True))]
    return curve_finding(table, metric, order, is_ordered=scale.is_numeric)
