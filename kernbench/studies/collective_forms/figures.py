"""The figure of the study. Its title states the finding, so it is computed from the rows."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from kernbench.studies import plots
from kernbench.studies.collective_forms.study import LARGE_BYTES, FormResults, FormRow


def ratios(results: FormResults) -> Figure:
    """Time over form against size, for each collective: solid for one PE, dashed for all PEs."""
    rows = results.rows
    names = list(dict.fromkeys(row.collective for row in rows))
    counts = sorted({row.ranks for row in rows})
    figure = plots.new_figure(7.0, _finding(rows))
    for name, axes in zip(names, plots.panels_of(figure, len(names), 3), strict=True):
        _panel(axes, [row for row in rows if row.collective == name], counts)
        axes.set_title(name, fontsize=11)
    legend = [
        plots.key(f"{count} ranks", colour, marker=marker)
        for count, (colour, marker) in zip(counts, _looks(counts), strict=True)
    ]
    legend += [plots.key("one PE a rank"), plots.key("all PEs", linestyle="--")]
    plots.legend_below(figure, legend)
    return figure


FIGURES: Mapping[str, Callable[[FormResults], Figure]] = {"collective_forms.png": ratios}
"""The figure by the name of its file."""


def _looks(counts: Sequence[int]) -> list[tuple[str, str]]:
    return plots.looks(len(counts), plots.SEVEN_LOOKS[:-1])


def _panel(axes: Axes, rows: Sequence[FormRow], counts: Sequence[int]) -> None:
    for count, (colour, marker) in zip(counts, _looks(counts), strict=True):
        for is_one, line in ((True, "-"), (False, "--")):
            points = [
                (row.nbytes, row.ratio)
                for row in rows
                if row.ranks == count and (row.pes == 1) == is_one
            ]
            if points:
                look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": line}
                axes.plot(*zip(*points, strict=True), markersize=5, linewidth=1.2, **look)
    sizes = sorted({row.nbytes for row in rows})
    axes.set_xscale("log")
    axes.set_xticks(sizes, [plots.size_label(nbytes) for nbytes in sizes], fontsize=8.5)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(alpha=plots.PALE)
    axes.set_ylabel("time / closed form")
    axes.set_xlabel("larger tensor of a rank")
    axes.label_outer()


def _finding(rows: Sequence[FormRow]) -> str:
    large = [row for row in rows if row.nbytes >= LARGE_BYTES] or list(rows)
    low, high = min(row.ratio for row in large), max(row.ratio for row in large)
    size = plots.size_label(min(row.nbytes for row in large))
    return f"From {size} on, collectives take {low:.2f} to {high:.2f} times their closed forms"
