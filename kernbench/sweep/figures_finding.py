"""The finding that the title of a figure states, computed from the numbers of the sweep."""

from collections.abc import Sequence

from kernbench.sweep.figures_quantity import Quantity, are_same, key_unit, shortened
from kernbench.sweep.sweep_table import SweepTable

_LISTED = 4
"""Keys in a title at most."""


def curve_finding(
    table: SweepTable, metric: Quantity, order: Sequence[int], *, is_ordered: bool
) -> str:
    """The gain of the metric along the rows in `order`, and the value beyond which it is none.

    Values without an order have the best point compared with the worst one.
    """
    rows = metric.rows(order)
    numbers = [metric.number(row) for row in rows]
    best = metric.number(metric.best(rows))
    # The first value that is as good as the best: what is beyond it costs and gains nothing.
    turn = next(place for place, number in enumerate(numbers) if are_same(number, best))
    is_back = turn == 0 and are_same(numbers[-1], best)
    if are_same(min(numbers), max(numbers)) or is_back or not is_ordered:
        return best_finding(table, metric)
    unit = key_unit(table.keys[0]) if len(table.keys) == 1 else ""
    start, middle, end = (values(table, rows[place]) for place in (0, turn, -1))
    name = _listed(table.keys)
    if turn == 0:
        return f"{metric.change(best, numbers[-1])} from {start} to {end}{unit} of {name}"
    gain = f"{metric.change(numbers[0], best)} from {start} to {middle}{unit} of {name}"
    if turn == len(rows) - 1:
        return gain
    if are_same(numbers[-1], best):
        return f"{gain}; nothing gained beyond {middle}"
    return f"{gain}; then {metric.change(best, numbers[-1])} to {end}"


def best_finding(table: SweepTable, metric: Quantity) -> str:
    """The best point of a sweep, and how much it gains over the worst."""
    rows = metric.rows(range(len(table.rows)))
    best, worst = metric.best(rows), metric.worst(rows)
    high, low = metric.number(best), metric.number(worst)
    if len(rows) == 1:
        return f"{metric.title} {metric.text(high)} with {point(table, best)}, the only result"
    if are_same(high, low):
        return f"{metric.title} {metric.text(high)} with all values of {_listed(table.keys)}"
    extreme = "greatest" if metric.more_is_better else "least"
    gain = f"{metric.change(low, high)} than" if metric.has_ratio(low, high) else metric.text(low)
    return (
        f"{extreme} {metric.title} {metric.text(high)} with {point(table, best)}: "
        f"{gain} with {values(table, worst)}"
    )


def point(table: SweepTable, row: int) -> str:
    """The keys of a row with their values."""
    pairs = zip(table.keys, table.rows[row].keys, strict=True)
    return _listed([f"{key} {shortened(value)}" for key, value in pairs])


def values(table: SweepTable, row: int) -> str:
    """The values of the keys of a row."""
    return _listed([shortened(value) for value in table.rows[row].keys])


def _listed(texts: Sequence[str]) -> str:
    """The first texts: a title has no room for eight keys."""
    rest = ["…"] if len(texts) > _LISTED else []
    return ", ".join([*texts[:_LISTED], *rest])
