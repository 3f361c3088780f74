"""Axes of the figures of a sweep: where the values of a key stand, and labels that do not overlap.

The values stand on a linear or a logarithmic scale if they are numbers, whichever spaces them more
evenly, else at equal distances. Labels that would overlap are left out.
"""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import AutoLocator, NullFormatter, NullLocator

from kernbench.studies.plots import DPI, PALE, WIDTH_IN, new_figure
from kernbench.sweep.figures_quantity import LABEL_CHARACTERS, Quantity, shortened
from kernbench.sweep.sweep_table import PointRow, Value

_TITLE_CHARACTERS = 100
_TITLE_LINE_IN = 0.25
NO_RESULT = "no result"
"""Label in a legend for points with a fault or without the metric."""
_POINTS = 9
"""Size of the labels of the values."""
CHARACTER_PX = 0.62 * _POINTS * DPI / 72
LINE_PX = 1.5 * _POINTS * DPI / 72
AXES_PX = 0.84 * WIDTH_IN * DPI
"""Estimated width of axes that fill a figure."""
_WIDE_RANGE = 30.0
"""The ratio of the greatest to the least number beyond which an axis is logarithmic."""
_FLAT = 1.2
"""The axis of a metric that varies by a smaller factor does not begin at 0."""


@dataclass(frozen=True)
class KeyScale:
    """Positions of labelled values along an axis; `name` is a scale of matplotlib."""

    name: str
    positions: tuple[float, ...]
    labels: tuple[str, ...]
    is_numeric: bool

    @property
    def is_plain(self) -> bool:
        """Whether the labels are the positions; those of a zip sweep are those of all keys."""
        return self.is_numeric and not any("\n" in label for label in self.labels)

    def draw(self, axes: Axes) -> None:
        """Put scale, ticks and labels on the x axis."""
        axes.set_xscale(self.name)
        ends = [self._place(end) for end in (min(self.positions), max(self.positions))]
        span = (ends[1] - ends[0]) or 1.0
        places_px = [(self._place(each) - ends[0]) / span * AXES_PX for each in self.positions]
        ticks(axes.xaxis, self.positions, self.labels, places_px, can_turn=not self.is_numeric)
        is_thin = len(axes.get_xticks()) < len(self.positions)
        if is_thin and self.is_plain and self.name == "linear":
            # Round numbers are easier to read than every seventh value.
            axes.xaxis.set_major_locator(AutoLocator())
            metric_format(axes.xaxis, self.positions)

    def _place(self, position: float) -> float:
        return log(position) if self.name == "log" else position


def key_scale(values: Sequence[Value]) -> KeyScale:
    """The scale of the distinct values of a key."""
    labels = tuple(value_text(value) for value in values)
    numbers = [float(value) for value in values if not isinstance(value, str)]
    if len(numbers) < len(values):
        return KeyScale("linear", tuple(map(float, range(len(values)))), labels, is_numeric=False)
    name = "log" if _is_geometric(sorted(numbers)) else "linear"
    return KeyScale(name, tuple(numbers), labels, is_numeric=True)


def zip_scale(rows: Sequence[PointRow]) -> KeyScale:
    """The scale of a zip sweep: the values of the first key, with those of all keys as labels.

    Where the values of the first key repeat, the points stand at equal distances.
    """
    first = [row.keys[0] for row in rows]
    labels = tuple("\n".join(map(value_text, row.keys)) for row in rows)
    if len(set(first)) == len(first):
        return replace(key_scale(first), labels=labels)
    return KeyScale("linear", tuple(map(float, range(len(rows)))), labels, is_numeric=False)


def ticks(
    axis: Axis,
    positions: Sequence[float],
    labels: Sequence[str],
    places_px: Sequence[float],
    *,
    can_turn: bool,
) -> None:
    """Label a horizontal axis with as many labels as fit, turned upwards where that fits more."""
    widths = [CHARACTER_PX * max(map(len, label.split("\n"))) for label in labels]
    heights = [LINE_PX * len(label.split("\n")) for label in labels]
    level = fitting(places_px, widths)
    turned = fitting(places_px, heights)
    is_turned = can_turn and len(level) < len(labels) and len(turned) > len(level)
    shown = turned if is_turned else level
    axis.set_ticks([positions[index] for index in shown], [labels[index] for index in shown])
    axis.set_tick_params(labelsize=_POINTS, labelrotation=90 if is_turned else 0)
    axis.set_minor_locator(NullLocator())


def level_ticks(
    axis: Axis, positions: Sequence[float], labels: Sequence[str], places_px: Sequence[float]
) -> None:
    """Label a vertical axis with as many labels as fit."""
    shown = fitting(places_px, [LINE_PX] * len(labels))
    axis.set_ticks([positions[index] for index in shown], [labels[index] for index in shown])
    axis.set_tick_params(labelsize=_POINTS)
    axis.set_minor_locator(NullLocator())


def fitting(places_px: Sequence[float], sizes_px: Sequence[float]) -> list[int]:
    """The indices of labels that do not overlap: all of them, every second, every third, …"""
    order = sorted(range(len(places_px)), key=lambda index: places_px[index])
    for stride in range(1, len(order)):
        shown = order[::stride]
        if all(
            places_px[right] - places_px[left]
            >= (sizes_px[left] + sizes_px[right]) / 2 + CHARACTER_PX
            for left, right in pairwise(shown)
        ):
            return shown
    return order[:1]


def metric_axis(axes: Axes, metric: Quantity, *, along: str) -> None:
    """Label the axis of a metric, logarithmic if its numbers are of very different magnitude."""
    axis: Axis = getattr(axes, f"{along}axis")
    axis.set_label_text(plain(metric.label))
    least, greatest = min(metric.present), max(metric.present)
    if is_wide(metric.present):
        axes.set(**{f"{along}scale": "log"})
    elif least >= 0 and greatest > _FLAT * least:
        axes.set(**{f"{along}lim": (0, 1.08 * greatest)})
    metric_format(axis, metric.present)
    axes.grid(alpha=PALE)
    axes.set_axisbelow(True)


def metric_format(axis: Axis, numbers: Sequence[float]) -> None:
    """Plain numbers along an axis: without an exponent or an offset, where that is possible."""
    digits = 6 if max(numbers) - min(numbers) >= 1e-3 * abs(max(numbers)) else 9
    axis.set_major_formatter(f"{{x:,.{digits}g}}")
    axis.set_minor_formatter(NullFormatter())


def is_wide(numbers: Sequence[float]) -> bool:
    """Whether numbers are of magnitudes that only a logarithmic scale shows together."""
    return min(numbers) > 0 and max(numbers) > _WIDE_RANGE * min(numbers)


def titled_figure(height_in: float, finding: str) -> Figure:
    """An empty figure whose title states the finding; each line after the first adds height."""
    lines = -(-len(finding) // _TITLE_CHARACTERS)
    # Lines of about the same length; one is at most as long as the title may be.
    width = min(_TITLE_CHARACTERS, len(finding) // lines + 10)
    title = fill(finding, width)
    return new_figure(height_in + _TITLE_LINE_IN * title.count("\n"), plain(title))


def value_text(value: Value, characters: int = LABEL_CHARACTERS) -> str:
    """A value of a key as a label."""
    return plain(shortened(value, characters))


def plain(text: str) -> str:
    """A text without the formulas that matplotlib reads between dollar signs."""
    return text.replace("$", r"\$")


def _is_geometric(numbers: Sequence[float]) -> bool:
    """Whether ascending numbers are spaced more evenly by factors than by differences."""
    if len(numbers) < 3 or numbers[0] <= 0:
        return False
    return _unevenness([log(number) for number in numbers]) < _unevenness(numbers)


def _unevenness(numbers: Sequence[float]) -> float:
    gaps = [second - first for first, second in pairwise(numbers)]
    # The logarithms of two large numbers can be equal.
    return max(gaps) / min(gaps) if min(gaps) else float("inf")
