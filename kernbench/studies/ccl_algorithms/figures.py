"""The figure of the study, as a PNG file. Its title says what the rows show, so it is computed from them."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from kernbench.studies.ccl_algorithms.choice import chosen_table, loss
from kernbench.studies.ccl_algorithms.rows import Row, Sweep
from kernbench.studies.plots import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    new_figure,
    saved,
    size_axis,
    size_label,
)
from runtime.ccl.config import Choice

LOOKS = ((BLUE, "o"), (SKY, "v"), (ORANGE, "D"), (GREEN, "^"), (VERMILION, "s"), (PURPLE, "P"))
"""Of the algorithms in their order."""
FIGURE = "ccl_algorithms.png"


def draw(sweep: Sweep, directory: Path) -> list[Path]:
    """Draw the figure; returns its file. Raises `UsageError` where it cannot be written."""
    return [saved(latency(sweep.rows), directory / FIGURE)]


def latency(rows: Sequence[Row]) -> Figure:
    """Time against size for each number of ranks, the fastest algorithm marked, and the limits of the chosen table."""
    chosen, ranks = chosen_table(rows), sorted({row.ranks for row in rows})
    looks = dict(zip(dict.fromkeys(row.algorithm for row in rows), cycle(LOOKS), strict=False))
    figure = new_figure(9.8, _finding(rows, chosen))
    panels = figure.subplots(-(-len(ranks) // 2), 2, sharex=True, sharey=True, squeeze=False).flat
    for count, axes in zip(ranks, panels, strict=False):
        _panel(axes, [row for row in rows if row.ranks == count], looks, chosen)
        axes.set_title(f"{count} ranks", fontsize=11)
    legend = [
        Line2D([], [], color=colour, marker=marker, label=name)
        for name, (colour, marker) in looks.items()
    ]
    legend.append(
        Line2D(
            [],
            [],
            color="black",
            linestyle="",
            marker="o",
            markersize=12,
            markerfacecolor="none",
            label="the fastest",
        )
    )
    legend.append(
        Line2D([], [], color="black", linestyle=":", label="where the chosen algorithm changes")
    )
    figure.legend(handles=legend, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _panel(
    axes: Axes, rows: Sequence[Row], looks: Mapping[str, tuple[str, str]], chosen: Sequence[Choice]
) -> None:
    for name, (colour, marker) in looks.items():
        points = [(row.nbytes, row.time_ps / 1e6) for row in rows if row.algorithm == name]
        axes.plot(
            *zip(*points, strict=True), color=colour, marker=marker, markersize=5, linewidth=1.2
        )
    sizes = sorted({row.nbytes for row in rows})
    for nbytes in sizes:
        least_us = min(row.time_ps for row in rows if row.nbytes == nbytes) / 1e6
        axes.plot(nbytes, least_us, "o", color="black", markersize=12, markerfacecolor="none")
    for row in chosen[:-1]:
        axes.axvline(row.up_to_bytes or 0, color="black", linestyle=":", linewidth=1.2)
    size_axis(axes, sizes)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("time of the kernels (us)")
    axes.set_xlabel("bytes of a rank's tensor")
    axes.label_outer()


def _finding(rows: Sequence[Row], chosen: Sequence[Choice]) -> str:
    limited = [
        f"{row.algorithm} up to {size_label(row.up_to_bytes)}"
        for row in chosen
        if row.up_to_bytes is not None
    ]
    lost = loss(rows, chosen)
    return (
        f"All-reduce by {', then '.join([*limited, chosen[-1].algorithm])}:\n"
        f"on the mean over ranks and sizes {lost.mean:.1%} longer than by the fastest algorithm, at most {lost.worst:.1%}"
    )
