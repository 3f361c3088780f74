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
from kernbench.sweep.figures_quantity import Quantity, are_same, factor
from kernbench.sweep.sweep_table import SweepTable, Value
from runtime.core.errors import UsageError

_KEY_CHARACTERS = 44
_BARS_SHARE = 0.6
"""Least share of the bars in the width of a figure: keys and sizes stand beside them."""
_POINTS = 9
_THIN = 0.005
"""Shorter bars, as a share of all, have a mark."""


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
    least, greatest = min(bar.least for bar in bars), max(bar.greatest for bar in bars)
    span = (greatest - least) or abs(greatest) or 1.0
    longest = max(len(value_text(end)) for bar in bars for end in (bar.low, bar.high))
    room = span * (0.02 + longest * CHARACTER_PX / (_BARS_SHARE * AXES_PX))
    axes.set_xlim(least - room, greatest + room)
    gap = 0.008 * (span + 2 * room)
    for place, bar in enumerate(bars):
        axes.barh(place, bar.size, left=bar.least, height=0.6, color=BLUE, zorder=2)
        if bar.size:
            ends = ((bar.least - gap, "right", bar.low), (bar.greatest + gap, "left", bar.high))
            for x, side, value in ends:
                axes.text(x, place, value_text(value), ha=side, va="center", fontsize=_POINTS)
        if bar.size < _THIN * span:
            axes.plot(bar.least, place, "|", color=BLUE, markersize=16, markeredgewidth=2)
        axes.text(
            1.01, place, _size(metric, bar), transform=axes.get_yaxis_transform(), va="center"
        )
    axes.set_yticks(range(len(bars)), [value_text(bar.key, _KEY_CHARACTERS) for bar in bars])
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.grid(axis="x", alpha=PALE)
    axes.set_axisbelow(True)
    metric_format(axes.xaxis, [least - room, greatest + room])
    axes.set_xlabel(
        f"mean {plain(metric.label)} over all values of the other keys,\n"
        "from the value of the key with the least mean to that with the greatest"
    )
    return figure


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
    size = _size(metric, first)
    finding = (
        f"{first.key} changes the {metric.title} most: {size} from {first.low} to {first.high}"
    )
    if len(bars) == 1:
        return finding
    if not last.size:
        return f"{finding}; {last.key} has no effect"
    return f"{finding}; {last.key} least: {_size(metric, last)}"
