"""The Pareto front of a sweep: all points over two metrics, and the points no other is better than.

A point is on the front if no other point is as good in both metrics and better in one.
"""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections import defaultdict
from collections.abc import Sequence
from textwrap import fill

from matplotlib.cbook import pts_to_poststep, pts_to_prestep
from matplotlib.figure import Figure

from kernbench.studies.plots import BLUE, GREY
from kernbench.sweep.figures_axes import metric_axis, plain, titled_figure, value_text
from kernbench.sweep.figures_finding import point
from kernbench.sweep.figures_labels import XY, place_labels
from kernbench.sweep.figures_quantity import Quantity
from kernbench.sweep.sweep_table import SweepTable
from runtime.core.errors import UsageError

_LEGEND_CHARACTERS = 120
_MANY = 100
"""More points have smaller markers."""


def pareto(table: SweepTable, first: Quantity, second: Quantity) -> Figure:
    """The first metric upwards, the second one to the right; raises `UsageError` without points."""
    rows = first.rows(second.rows(range(len(table.rows))))
    if not rows:
        raise UsageError(f"no point of the sweep has both {first.title} and {second.title}")
    best = front(first, second, rows)
    figure = titled_figure(6.5, _finding(table, first, second, rows, best))
    axes = figure.subplots()
    others = sorted(set(rows) - set(best))
    size = 6 if len(rows) <= _MANY else 3
    for name, colour, markersize, shown in (
        ("other points", GREY, size, others),
        ("front", BLUE, size + 2, best),
    ):
        axes.plot(
            [second.number(row) for row in shown],
            [first.number(row) for row in shown],
            color=colour,
            marker="o",
            markersize=markersize,
            # The best of `first` for each limit of `second`.
            drawstyle="steps-pre" if second.more_is_better else "steps-post",
            linestyle="-" if shown is best else "",
            label=name,
        )
    metric_axis(axes, first, along="y")
    metric_axis(axes, second, along="x")
    axes.set_xlabel(plain(f"{second.label}, {_direction(second)}"))
    axes.set_ylabel(plain(f"{first.label}, {_direction(first)}"))
    names = f"labels, where there is room: {', '.join(_changing(table))}"
    figure.legend(
        title=plain(fill(names, _LEGEND_CHARACTERS)),
        loc="outside lower center",
        frameon=False,
        ncols=2,
    )
    points = [(second.number(row), first.number(row)) for row in rows]
    steps = _steps(first, second, best)
    place_labels(figure, axes, _labels(table, first, second, best), points, steps)
    return figure


def front(first: Quantity, second: Quantity, rows: Sequence[int]) -> list[int]:
    """The rows of the front, in ascending order of `second`."""
    signs = [-1.0 if metric.more_is_better else 1.0 for metric in (second, first)]
    costs = {row: (signs[0] * second.number(row), signs[1] * first.number(row)) for row in rows}
    best: list[int] = []
    for row in sorted(rows, key=lambda row: costs[row]):
        # The rows so far cost no more of `second`: a row is on the front if it costs less of
        # `first`, or as much of both as the last one.
        if not best or costs[row][1] < costs[best[-1]][1] or costs[row] == costs[best[-1]]:
            best.append(row)
    return best[::-1] if second.more_is_better else best


def _steps(first: Quantity, second: Quantity, best: Sequence[int]) -> list[XY]:
    """The vertices of the step line through the front."""
    convert = pts_to_prestep if second.more_is_better else pts_to_poststep
    x, y = convert([second.number(row) for row in best], [first.number(row) for row in best])
    return list(zip(x.tolist(), y.tolist(), strict=True))


def _labels(
    table: SweepTable, first: Quantity, second: Quantity, best: Sequence[int]
) -> dict[XY, str]:
    """The values of the keys for each place of the front; the first and the last place first."""
    rows_at: dict[XY, list[int]] = defaultdict(list)
    for row in best:
        rows_at[second.number(row), first.number(row)].append(row)
    places = list(rows_at)
    indices = [table.keys.index(key) for key in _changing(table)]
    labels: dict[XY, str] = {}
    for place in dict.fromkeys([places[0], places[-1], *places]):
        rows = rows_at[place]
        text = ", ".join(value_text(table.rows[rows[0]].keys[index]) for index in indices)
        labels[place] = text if len(rows) == 1 else f"{text} and {len(rows) - 1} more"
    return labels


def _changing(table: SweepTable) -> list[str]:
    """The keys with several values; all keys of a sweep of a single point."""
    return [key for key in table.keys if len(table.values(key)) > 1] or list(table.keys)


def _direction(metric: Quantity) -> str:
    return "more is better" if metric.more_is_better else "less is better"


def _finding(
    table: SweepTable, first: Quantity, second: Quantity, rows: Sequence[int], best: Sequence[int]
) -> str:
    left_out = len(table.rows) - len(rows)
    count = f"{len(rows)} points" + (f" ({left_out} without result)" if left_out else "")
    (y0, x0), (y1, x1) = (
        (first.text(first.number(row)), second.text(second.number(row)))
        for row in (best[0], best[-1])
    )
    if len(rows) == 1:
        return (
            f"{point(table, rows[0])} is the only result: {first.title} {y0}, {second.title} {x0}"
        )
    if len(best) == 1:
        start = f"{point(table, best[0])} is the best of {count} in both"
        return f"{start}: {first.title} {y0}, {second.title} {x0}"
    start = f"{len(best)} of {count} are on the front"
    if (y0, x0) == (y1, x1):
        return f"{start}, all with {first.title} {y0}, {second.title} {x0}"
    return f"{start}: {first.title} {y0} at {second.title} {x0} to {y1} at {x1}"
