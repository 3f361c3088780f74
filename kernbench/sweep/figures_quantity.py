"""A column of a sweep as a figure shows it: numbers with a unit, and which of two is better.

The unit is at the end of the column's name. Time is shown in ns, us, ms or s, which its median
selects. More is better for columns that end in the unit of a rate, less for all other columns and
for the swept keys, which are what a design spends.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from math import isfinite
from statistics import median

from kernbench.sweep.sweep_table import SweepTable, Value
from runtime.core.errors import UsageError

_TIMES_NS = {"ps": 1e-3, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_SHOWN_TIMES = (("s", 1e9), ("ms", 1e6), ("us", 1e3))
_RATES = {"gbs": "GB/s", "tflops": "TFLOPS", "gflops": "GFLOPS"}
_UNITS = _RATES | {
    "percent": "%",
    "bytes": "B",
    "gib": "GiB",
    "mib": "MiB",
    "mb": "MB",
    "ghz": "GHz",
    "mm": "mm",
    "cycles": "cycles",
}
LABEL_CHARACTERS = 28
"""Most characters of a value in a label or a title."""
_SAME = 0.01
"""Numbers that differ by less, relatively, count as equal in a finding."""


@dataclass(frozen=True)
class Quantity:
    """A column: a number for each row of the sweep, None where the point has none.

    The numbers are in `unit`, which is empty for a number without one.
    """

    title: str
    unit: str
    numbers: tuple[float | None, ...]
    is_time: bool
    more_is_better: bool

    @property
    def label(self) -> str:
        """The label of an axis."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def present(self) -> list[float]:
        """The numbers that exist."""
        return [number for number in self.numbers if number is not None]

    def text(self, number: float) -> str:
        """A number with its unit."""
        return f"{short(number)} {self.unit}".rstrip()

    def rows(self, order: Iterable[int]) -> list[int]:
        """The rows of `order` that have a number."""
        return [row for row in order if self.numbers[row] is not None]

    def number(self, row: int) -> float:
        """The number of a row that has one."""
        number = self.numbers[row]
        assert number is not None
        return number

    def best(self, rows: Iterable[int]) -> int:
        """The row with the best number; of equal ones the first."""
        return (max if self.more_is_better else min)(rows, key=self.number)

    def worst(self, rows: Iterable[int]) -> int:
        """The row with the worst number; of equal ones the first."""
        return (min if self.more_is_better else max)(rows, key=self.number)

    def has_ratio(self, *numbers: float) -> bool:
        """Whether a change between these numbers is a factor: percentages and 0 have none."""
        return min(numbers) > 0 and self.unit != "%"

    def change(self, start: float, end: float) -> str:
        """The change from one number to another in words, such as `2.1x faster`."""
        if not self.has_ratio(start, end):
            return f"{self.title} from {short(start)} to {self.text(end)}"
        ratio = factor(max(start, end) / min(start, end))
        if self.is_time:
            word = "slower" if end > start else "faster"
            is_total = self.title == "simulated time"
            return f"{ratio} {word}" if is_total else f"{self.title} {ratio} {word}"
        return f"{self.title} {ratio} {'higher' if end > start else 'lower'}"


def quantities(table: SweepTable, metric: str) -> list[Quantity]:
    """The column `metric`, or the columns between its commas; the names of columns may have commas.

    `+column` states that more is better, `-column` that less is. Raises `UsageError` for a name
    that is no column and for a column that is not of numbers.
    """
    return [_quantity(table, name) for name in metric_names(metric, (*table.columns, *table.keys))]


def metric_names(metric: str, columns: Container[str]) -> list[str]:
    """The names in a metric, with their signs: one, or those between its commas."""
    parts = metric.split(",")
    for end in range(len(parts), 0, -1):
        # The longest name first: `rate_tflops@4,8` is one column.
        name = ",".join(parts[:end])
        if _without_sign(name, columns) in columns:
            rest = parts[end:]
            return [name, *metric_names(",".join(rest), columns)] if rest else [name]
    return parts


def _without_sign(metric: str, columns: Container[str]) -> str:
    # The name of an argument, such as `--size`, begins with the sign itself.
    return metric[1:] if metric[:1] in ("+", "-") and metric not in columns else metric


def _quantity(table: SweepTable, metric: str) -> Quantity:
    name = _without_sign(metric, (*table.columns, *table.keys))
    numbers = tuple(_numbers(name, table.column(name)))
    present = [number for number in numbers if number is not None]
    if not present:
        raise UsageError(f"metric {name!r} has no number in any point of the sweep")
    # `algbw_gbs@4096` is the value of one row of a bench's table.
    heading, separator, labels = name.partition("@")
    stem, _, suffix = heading.rpartition("_")
    is_key = name in table.keys
    is_rate = suffix in _RATES and not is_key
    more_is_better = is_rate if name == metric else metric[0] == "+"
    title, unit, scale = name, key_unit(heading).strip(), 1.0
    if stem and suffix in _TIMES_NS and not is_key:
        unit, scale = _time_unit(suffix, present)
    if unit and not is_key:
        title = (
            "simulated time" if name == "time_ns" else stem.replace("_", " ") + separator + labels
        )
    return Quantity(
        title=title,
        unit=unit,
        numbers=tuple(None if number is None else number * scale for number in numbers),
        is_time=bool(stem) and suffix in _TIMES_NS,
        more_is_better=more_is_better,
    )


def key_unit(key: str) -> str:
    """The unit of a swept key, with a space before it, or nothing."""
    stem, _, suffix = key.rpartition("_")
    unit = suffix if suffix in _TIMES_NS else _UNITS.get(suffix)
    return f" {unit}" if stem and unit else ""


def key_label(key: str) -> str:
    """The label of the axis of a swept key."""
    unit = key_unit(key)
    return f"{key} ({unit.strip()})" if unit else key


def shortened(value: Value, characters: int = LABEL_CHARACTERS) -> str:
    """A value of a key as text, without its middle if it is longer."""
    text, half = str(value), characters // 2
    return text if len(text) <= characters else f"{text[: half - 1]}…{text[-half:]}"


def factor(ratio: float) -> str:
    """A ratio of at least 1, such as `2.1x`."""
    if ratio >= 100:
        return f"{ratio:,.0f}x"
    return f"{ratio:.2f}x" if ratio < 1.1 else f"{ratio:.2g}x"


def are_same(number: float, other: float) -> bool:
    """Whether a finding counts two numbers as equal."""
    return abs(number - other) <= _SAME * max(abs(number), abs(other))


def short(number: float) -> str:
    """A number with at least three digits, with separators and, where possible, no exponent."""
    if number == 0 or abs(number) >= 1e15:
        return f"{number:.3g}"
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def _numbers(name: str, cells: Iterable[Value | None]) -> Iterable[float | None]:
    for cell in cells:
        if isinstance(cell, str):
            raise UsageError(f"metric {name!r} is not a number: a point has {cell!r}")
        if cell is not None and not isfinite(cell):
            raise UsageError(f"metric {name!r} has a number that is too large for a figure")
        yield None if cell is None else float(cell)


def _time_unit(suffix: str, numbers: Iterable[float]) -> tuple[str, float]:
    """The unit that shows these times, and its factor."""
    source_ns = _TIMES_NS[suffix]
    typical_ns = abs(median(numbers)) * source_ns
    unit, unit_ns = next((each for each in _SHOWN_TIMES if typical_ns >= each[1]), ("ns", 1.0))
    return unit, source_ns / unit_ns
