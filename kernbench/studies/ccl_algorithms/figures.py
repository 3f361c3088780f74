"""The figures of the study. Their titles state findings, so they are computed from the rows."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from kernbench.studies import plots
from kernbench.studies.ccl_algorithms.rows import AlgorithmResults, AlgorithmRow
from kernbench.studies.ccl_algorithms.selection import (
    algorithm_for,
    candidates,
    loss,
    selected_table,
    tables_of,
)
from runtime.ccl.selection import CallShape, Choice, matching_row


def latency(results: AlgorithmResults) -> Figure:
    """Time against size for each number of ranks on rings.

    Circles mark the fastest algorithm, vertical lines the limits of the selected table. A
    cross is its time at a size that is held out; the title has its loss at these sizes.
    """
    rows = _all_reduces(results.of_tables)
    of = candidates(rows, "all_reduce")
    on_rings = [row for row in rows if not row.grid]
    held_out = _all_reduces(results.held_out)
    figure = plots.new_figure(7.0, _finding(held_out, selected_table(of)))
    _panels(figure, _by_system([*on_rings, *held_out]), rows, columns=2)
    return figure


def latency_on_grids(results: AlgorithmResults) -> Figure:
    """The same for each grid of SIPs and number of cubes."""
    rows = _all_reduces(results.of_tables)
    on_grids = _by_system([row for row in rows if row.grid])
    if not on_grids:
        return plots.new_figure(4.5, "All-reduces on grids of SIPs: no sizes were measured")
    figure = plots.new_figure(4.5, _finding_on_grids(rows))
    _panels(figure, on_grids, rows, columns=len(on_grids))
    return figure


FIGURES: Mapping[str, Callable[[AlgorithmResults], Figure]] = {
    "ccl_algorithms.png": latency,
    "ccl_algorithms_on_grids.png": latency_on_grids,
}
"""The figures by the names of their files."""


def _all_reduces(rows: Sequence[AlgorithmRow]) -> list[AlgorithmRow]:
    return [row for row in rows if row.collective == "all_reduce"]


def _by_system(rows: Sequence[AlgorithmRow]) -> dict[str, list[AlgorithmRow]]:
    """The rows of each panel by its title."""
    panels: dict[str, list[AlgorithmRow]] = {}
    for row in rows:
        title = f"{row.grid}, {row.cubes} cubes" if row.grid else f"{row.ranks} ranks"
        panels.setdefault(title, []).append(row)
    return panels


def _panels(
    figure: Figure,
    panels: Mapping[str, Sequence[AlgorithmRow]],
    rows: Sequence[AlgorithmRow],
    columns: int,
) -> None:
    """Panels with one legend; an algorithm has one style in all figures of `rows`."""
    selected = tables_of(rows)["all_reduce"]
    names = list(dict.fromkeys(row.algorithm for row in rows))
    styles = dict(zip(names, plots.looks(len(names), plots.SEVEN_LOOKS), strict=True))
    shown = {row.algorithm for of_panel in panels.values() for row in of_panel}
    styles = {name: style for name, style in styles.items() if name in shown}
    axes = plots.panels_of(figure, len(panels), columns)
    for (title, of_panel), each in zip(panels.items(), axes, strict=True):
        _panel(each, of_panel, styles, selected)
        each.set_title(title, fontsize=11)
    legend = [plots.key(name, colour, marker=marker) for name, (colour, marker) in styles.items()]
    circle: dict[str, Any] = {
        "linestyle": "",
        "marker": "o",
        "markersize": 12,
        "markerfacecolor": "none",
    }
    legend.append(plots.key("fastest algorithm", **circle))
    legend.append(plots.key("size at which the selected algorithm changes", linestyle=":"))
    if any(row.held_out for of_panel in panels.values() for row in of_panel):
        legend.append(plots.key("auto at a held-out size", linestyle="", marker="x", markersize=7))
    plots.legend_below(figure, legend, 4)


def _panel(
    axes: Axes,
    rows: Sequence[AlgorithmRow],
    styles: Mapping[str, tuple[str, str]],
    selected: Sequence[Choice],
) -> None:
    measured = [row for row in rows if not row.held_out]
    for name, (colour, marker) in styles.items():
        points = [(row.nbytes, row.time_ps / 1e6) for row in measured if row.algorithm == name]
        axes.plot(
            *zip(*points, strict=True), color=colour, marker=marker, markersize=5, linewidth=1.2
        )
    for row in rows:
        if row.held_out and row.algorithm == algorithm_for(selected, row):
            axes.plot(row.nbytes, row.time_ps / 1e6, "x", color="black", markersize=7)
    sizes = sorted({row.nbytes for row in measured})
    for nbytes in sizes:
        least_us = min(row.time_ps for row in measured if row.nbytes == nbytes) / 1e6
        axes.plot(nbytes, least_us, "o", color="black", markersize=12, markerfacecolor="none")
    for nbytes in _changes(selected, rows[0].call):
        if nbytes < sizes[0]:
            continue
        axes.axvline(nbytes, color="black", linestyle=":", linewidth=1.2)
    plots.size_axis(axes, sizes)
    # The times span less than two decades: powers of ten alone would give two labels.
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("time of the kernels (us)")
    axes.set_xlabel("bytes of a rank's tensor")
    axes.label_outer()


def _changes(selected: Sequence[Choice], call: CallShape) -> list[int]:
    """The sizes at which a table changes the algorithm of a call."""
    limits = {row.up_to_bytes for row in selected} | {row.from_bytes for row in selected}
    sizes = sorted(nbytes for nbytes in limits if nbytes is not None)
    chosen = [
        {matching_row(selected, call._replace(nbytes=each)) for each in (nbytes - 1, nbytes + 1)}
        for nbytes in sizes
    ]
    return [nbytes for nbytes, rows in zip(sizes, chosen, strict=True) if len(rows) > 1]


def _finding(rows: Sequence[AlgorithmRow], selected: Sequence[Choice]) -> str:
    if not rows:
        return "All-reduce by size and ranks"
    lost = loss(rows, selected)
    return (
        f"All-reduce at sizes between those of the selection: on average {lost.mean:.1%} slower\n"
        f"than the fastest algorithm of each held-out point, at most {lost.worst:.1%}"
    )


def _finding_on_grids(rows: Sequence[AlgorithmRow]) -> str:
    on_rings = {row.algorithm for row in rows if not row.grid}
    times = {(row.call, row.algorithm): row.time_ps for row in rows if row.grid}
    gains = [
        (min(times[call, other] for other in on_rings if (call, other) in times) / time_ps, name)
        for (call, name), time_ps in times.items()
        if name not in on_rings
    ]
    if not gains:
        return "All-reduces on grids of SIPs"
    gain, name = max(gains)
    return (
        f"All-reduces on grids of SIPs: {name} up to {gain:.2f} times as fast\n"
        "as the fastest algorithm that does not need rows and columns"
    )
