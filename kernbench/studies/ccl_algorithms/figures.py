"""The figure of the study. Its title states the finding, so it is computed from the rows."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from kernbench.studies.ccl_algorithms.rows import AlgorithmResults, AlgorithmRow
from kernbench.studies.ccl_algorithms.selection import candidates, loss, selected_table
from kernbench.studies.plots import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    new_figure,
    size_axis,
)
from runtime.ccl.selection import Choice

STYLES = ((BLUE, "o"), (SKY, "v"), (ORANGE, "D"), (GREEN, "^"), (VERMILION, "s"), (PURPLE, "P"))
"""Colour and marker of each algorithm, in the order of `ccl.yaml`."""


def latency(results: AlgorithmResults) -> Figure:
    """Time against size for each number of ranks.

    Circles mark the fastest algorithm, vertical lines the limits of the selected table.
    """
    rows = [row for row in results.rows if row.collective == "all_reduce"]
    of = candidates(rows, "all_reduce")
    selected, ranks = selected_table(of), sorted({row.ranks for row in rows})
    styles = dict(zip(dict.fromkeys(row.algorithm for row in rows), cycle(STYLES), strict=False))
    figure = new_figure(7.0, _finding(of, selected))
    panels = figure.subplots(-(-len(ranks) // 2), 2, sharex=True, sharey=True, squeeze=False).flat
    for count, axes in zip(ranks, panels, strict=False):
        _panel(axes, [row for row in rows if row.ranks == count], styles, selected)
        axes.set_title(f"{count} ranks", fontsize=11)
    legend = [
        Line2D([], [], color=colour, marker=marker, label=name)
        for name, (colour, marker) in styles.items()
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
            label="fastest algorithm",
        )
    )
    legend.append(
        Line2D(
            [],
            [],
            color="black",
            linestyle=":",
            label="size at which the selected algorithm changes",
        )
    )
    figure.legend(handles=legend, loc="outside lower center", ncols=4, frameon=False)
    return figure


FIGURES: Mapping[str, Callable[[AlgorithmResults], Figure]] = {"ccl_algorithms.png": latency}
"""The figure by the name of its file."""


def _panel(
    axes: Axes,
    rows: Sequence[AlgorithmRow],
    styles: Mapping[str, tuple[str, str]],
    selected: Sequence[Choice],
) -> None:
    for name, (colour, marker) in styles.items():
        points = [(row.nbytes, row.time_ps / 1e6) for row in rows if row.algorithm == name]
        axes.plot(
            *zip(*points, strict=True), color=colour, marker=marker, markersize=5, linewidth=1.2
        )
    sizes = sorted({row.nbytes for row in rows})
    for nbytes in sizes:
        least_us = min(row.time_ps for row in rows if row.nbytes == nbytes) / 1e6
        axes.plot(nbytes, least_us, "o", color="black", markersize=12, markerfacecolor="none")
    for row in _reached(selected, rows[0].ranks):
        if row.up_to_bytes is not None:
            axes.axvline(row.up_to_bytes, color="black", linestyle=":", linewidth=1.2)
    size_axis(axes, sizes)
    # The times span less than two decades: powers of ten alone would give two labels.
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("time of the kernels (us)")
    axes.set_xlabel("bytes of a rank's tensor")
    axes.label_outer()


def _reached(selected: Sequence[Choice], ranks: int) -> list[Choice]:
    """The rows of a table for a number of ranks, up to the first one of any size."""
    of_ranks = [row for row in selected if row.up_to_ranks is None or ranks <= row.up_to_ranks]
    last = next(index for index, row in enumerate(of_ranks) if row.up_to_bytes is None)
    return of_ranks[: last + 1]


def _finding(rows: Sequence[AlgorithmRow], selected: Sequence[Choice]) -> str:
    lost = loss(rows, selected)
    return (
        f"All-reduce by size and ranks: on average {lost.mean:.1%} slower\n"
        f"than the fastest algorithm of each point, at most {lost.worst:.1%}"
    )
