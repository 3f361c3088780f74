"""The figure of the study. Its title states the finding, so it is computed from the rows."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from kernbench.studies.collective_forms.study import LARGE_BYTES, FormResults, FormRow
from kernbench.studies.plots import (
    BLUE,
    GREEN,
    ORANGE,
    PALE,
    PURPLE,
    SKY,
    VERMILION,
    new_figure,
    size_label,
)

STYLES = ((BLUE, "o"), (SKY, "v"), (ORANGE, "D"), (GREEN, "^"), (VERMILION, "s"), (PURPLE, "P"))
"""Colour and marker of each number of ranks."""


def ratios(results: FormResults) -> Figure:
    """Time over form against size, for each collective: solid for one PE, dashed for all PEs."""
    rows = results.rows
    names = list(dict.fromkeys(row.collective for row in rows))
    counts = sorted({row.ranks for row in rows})
    figure = new_figure(7.0, _finding(rows))
    panels = figure.subplots(-(-len(names) // 3), 3, sharex=True, sharey=True, squeeze=False).flat
    for name, axes in zip(names, panels, strict=False):
        _panel(axes, [row for row in rows if row.collective == name], counts)
        axes.set_title(name, fontsize=11)
    for axes in list(panels)[len(names) :]:
        axes.set_axis_off()
    legend = [
        Line2D([], [], color=colour, marker=marker, label=f"{count} ranks")
        for count, (colour, marker) in zip(counts, cycle(STYLES), strict=False)
    ]
    legend.append(Line2D([], [], color="black", label="one PE a rank"))
    legend.append(Line2D([], [], color="black", linestyle="--", label="all PEs"))
    figure.legend(handles=legend, loc="outside lower center", ncols=len(legend), frameon=False)
    return figure


FIGURES: Mapping[str, Callable[[FormResults], Figure]] = {"collective_forms.png": ratios}
"""The figure by the name of its file."""


def _panel(axes: Axes, rows: Sequence[FormRow], counts: Sequence[int]) -> None:
    for count, (colour, marker) in zip(counts, cycle(STYLES), strict=False):
        for is_one, line in ((True, "-"), (False, "--")):
            points = [
                (row.nbytes, row.ratio)
                for row in rows
                if row.ranks == count and (row.pes == 1) == is_one
            ]
            if points:
                axes.plot(
                    *zip(*points, strict=True),
                    color=colour,
                    marker=marker,
                    markersize=5,
                    linewidth=1.2,
                    linestyle=line,
                )
    sizes = sorted({row.nbytes for row in rows})
    axes.set_xscale("log")
    axes.set_xticks(sizes, [size_label(nbytes) for nbytes in sizes], fontsize=8.5)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(alpha=PALE)
    axes.set_ylabel("time / closed form")
    axes.set_xlabel("larger tensor of a rank")
    axes.label_outer()


def _finding(rows: Sequence[FormRow]) -> str:
    large = [row for row in rows if row.nbytes >= LARGE_BYTES] or list(rows)
    low, high = min(row.ratio for row in large), max(row.ratio for row in large)
    size = size_label(min(row.nbytes for row in large))
    return f"From {size} on, collectives take {low:.2f} to {high:.2f} times their closed forms"
