"""The tornado of a sweep: which of its keys changes the metric most.

The effect of a key is defined on a full grid: for each of its values, the mean of the metric over
all values of the other keys; the bar reaches from the least to the greatest of these means. Where
a point has no number, the points with the same values of the other keys are left out of the means,
for all values of the key alike.
"""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum

from matplotlib.figure import Figure

from kernbench.studies.plots import BLUE, PALE
from kernbench.sweep.figures_axes import (
    AXES_PX,
    CHARACTER_PX,
    metric_format,
    plain,
    titled_figure,
    value_text,
)
from kernbench.sweep.figures_quantity import Quantity, are_same, factor, shortened
from kernbench.sweep.sweep_table import SweepTable, Value
from runtime.core.errors import UsageError

_KEY_CHARACTERS = 44
_BARS_SHARE = 0.6
"""Least share of the bars in the width of a figure: keys and sizes stand beside them."""
_POINTS = 9
_GAP = 0.008
"""Gap between a bar and its labels, as a share of the axis."""
_ROUNDS = 20
"""Enough for labels that fill two thirds of the axis."""
_THIN = 0.005
"""Shorter bars, as a share of the axis, have a mark."""


@dataclass(frozen=True)
class Effect:
    """The values of a key with the least and the greatest mean, and these means."""

    key: str
    low: Value
    high: Value
    least: float
    greatest: float

    @property
    def size(self) -> float:
        """The length of the bar."""
        return self.greatest - self.least


def effects(table: SweepTable, metric: Quantity) -> list[Effect]:
    """The effect of each key, the largest first; equal ones in the order of the keys.

    A key of which no combination of the others is complete has none.
    """
    return sorted(_effects(table, metric), key=lambda effect: -effect.size)


def _effects(table: SweepTable, metric: Quantity) -> Iterator[Effect]:
    for place, key in enumerate(table.keys):
        lines: dict[tuple[Value, ...], dict[Value, float | None]] = defaultdict(dict)
        for row, number in zip(table.rows, metric.numbers, strict=True):
            others = (*row.keys[:place], *row.keys[place + 1 :])
            lines[others][row.keys[place]] = number
        complete = [line for line in lines.values() if None not in line.values()]
        if not complete:
            continue
        means = {
            value: fsum(line[value] or 0.0 for line in complete) / len(complete)
            for value in table.values(key)
        }
        low, high = (choose(means, key=lambda value: means[value]) for choose in (min, max))
        yield Effect(key, low, high, means[low], means[high])


def tornado(table: SweepTable, metric: Quantity) -> Figure:
    """A bar for each key, the longest on top, with the values at its ends and its length."""
    bars = effects(table, metric)
    if not bars:
        raise UsageError(
            f"a tornado of {metric.title} needs, for a key, results at all of its values; "
            "every combination of the other keys has a point without one"
        )
    figure = titled_figure(2.2 + 0.5 * len(bars), _finding(metric, bars))
    axes = figure.subplots()
    left, right = _limits(bars)
    axes.set_xlim(left, right)
    gap = _GAP * (right - left)
    for place, bar in enumerate(bars):
        axes.barh(place, bar.size, left=bar.least, height=0.6, color=BLUE, zorder=2)
        if bar.size:
            ends = ((bar.least - gap, "right", bar.low), (bar.greatest + gap, "left", bar.high))
            for x, side, value in ends:
                axes.text(x, place, value_text(value), ha=side, va="center", fontsize=_POINTS)
        if bar.size < _THIN * (right - left):
            axes.plot(bar.least, place, "|", color=BLUE, markersize=16, markeredgewidth=2)
        axes.text(
            1.01, place, _size(metric, bar), transform=axes.get_yaxis_transform(), va="center"
        )
    axes.set_yticks(range(len(bars)), [value_text(bar.key, _KEY_CHARACTERS) for bar in bars])
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.grid(axis="x", alpha=PALE)
    axes.set_axisbelow(True)
    metric_format(axes.xaxis, [left, right])
    axes.set_xlabel(
        f"mean {plain(metric.label)} over all values of the other keys,\n"
        "from the value of the key with the least mean to that with the greatest"
    )
    return figure


def _limits(bars: Sequence[Effect]) -> tuple[float, float]:
    """The limits of the x axis, between which bars and the labels at their ends have room."""
    left: float = min(bar.least for bar in bars)
    right: float = max(bar.greatest for bar in bars)
    if left == right:
        # Without a length, labels do not matter.
        return left - (abs(left) or 1.0) / 10, right + (abs(right) or 1.0) / 10
    for _ in range(_ROUNDS):
        # More room for a label makes the axis longer, and with it all labels.
        span = right - left
        left = min(bar.least - span * _share(bar.low) for bar in bars)
        right = max(bar.greatest + span * _share(bar.high) for bar in bars)
    return left, right


def _share(value: Value) -> float:
    """The share of a label, with the gap to its bar, in the width of the axes."""
    return 2 * _GAP + len(value_text(value)) * CHARACTER_PX / (_BARS_SHARE * AXES_PX)


def _size(metric: Quantity, bar: Effect) -> str:
    if not bar.size:
        return "no effect"
    if not metric.has_ratio(bar.least, bar.greatest) or are_same(bar.least, bar.greatest):
        return plain(metric.text(bar.size))
    return plain(f"{metric.text(bar.size)} ({factor(bar.greatest / bar.least)})")


def _finding(metric: Quantity, bars: Sequence[Effect]) -> str:
    first, last = bars[0], bars[-1]
    if not first.size:
        return f"{metric.title} {metric.text(first.least)} in the mean, which no key changes"
    size, ends = _size(metric, first), f"{shortened(first.low)} to {shortened(first.high)}"
    finding = f"{first.key} changes the {metric.title} most: {size} from {ends}"
    if len(bars) == 1:
        return finding
    if not last.size:
        return f"{finding}; {last.key} has no effect"
    return f"{finding}; {last.key} least: {_size(metric, last)}"
