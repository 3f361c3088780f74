"""The figure of the study. Its title states the finding, so it is computed from the rows."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kernbench.studies import plots
from kernbench.studies.moe_all_to_all.rows import MoeResults, MoeRow

STYLES = (*plots.LOOKS, (plots.PURPLE, "P"), (plots.SKY, "v"), (plots.GREY, "X"))
"""Colour and marker of each number of ranks; there are at most seven, from 2 to 8."""
_BARS_WIDTH = 0.8


def exchanges(results: MoeResults) -> Figure:
    """Time and bound against skew for each number of ranks; the loads of the largest number."""
    rows = results.rows
    counts = sorted({row.ranks for row in rows})
    figure = plots.new_figure(5.6, _finding(rows))
    by_skew, loads = figure.subplots(1, 2)
    for count, (colour, marker) in zip(counts, cycle(STYLES), strict=False):
        _times(by_skew, [row for row in rows if row.ranks == count], colour, marker)
    by_skew.set_xlabel("skew: the largest load of a rank over the mean")
    by_skew.set_ylabel("time of dispatch and combine (us)")
    by_skew.set_ylim(bottom=0)
    by_skew.grid(alpha=plots.PALE)
    bound = plots.key("bound: the busiest port", linestyle="--")
    handles, _ = by_skew.get_legend_handles_labels()
    by_skew.legend(handles=[*handles, bound], frameon=False)
    _loads(loads, [row for row in rows if row.ranks == counts[-1]])
    return figure


FIGURES: Mapping[str, Callable[[MoeResults], Figure]] = {"moe_all_to_all.png": exchanges}
"""The figure by the name of its file."""


def _times(axes: Axes, rows: Sequence[MoeRow], colour: str, marker: str) -> None:
    ordered = sorted(rows, key=lambda row: row.skew)
    skews = [row.skew for row in ordered]
    times = [row.time_ps / 1e6 for row in ordered]
    axes.plot(skews, times, color=colour, marker=marker, label=f"{ordered[0].ranks} ranks")
    axes.plot(skews, [row.bound_ps / 1e6 for row in ordered], color=colour, linestyle="--")


def _loads(axes: Axes, rows: Sequence[MoeRow]) -> None:
    """Bars of the copies that each rank receives, one group a rank."""
    width = _BARS_WIDTH / len(rows)
    for number, (row, (colour, _)) in enumerate(zip(rows, cycle(STYLES), strict=False)):
        middle = (number - (len(rows) - 1) / 2) * width
        places = [rank + middle for rank in range(row.ranks)]
        axes.bar(places, row.loads, width, color=colour, label=f"exponent {row.routing}")
    ranks = range(rows[0].ranks)
    axes.set_xticks(ranks, [str(rank) for rank in ranks])
    axes.set_xlabel(f"rank, of {rows[0].ranks}")
    axes.set_ylabel("copies of tokens that its experts receive")
    axes.grid(axis="y", alpha=plots.PALE)
    axes.legend(frameon=False)


def _finding(rows: Sequence[MoeRow]) -> str:
    most = max(row.ranks for row in rows)
    same = [row for row in rows if row.ranks == most]
    even, uneven = (choose(same, key=lambda row: row.skew) for choose in (min, max))
    ratios = [row.time_ps / row.bound_ps for row in rows]
    return (
        f"Dispatch and combine on {most} ranks: a skew of {uneven.skew:.2f} takes "
        f"{uneven.time_ps / even.time_ps:.2f} times as long as one of {even.skew:.2f};\n"
        f"all times are {min(ratios):.2f} to {max(ratios):.2f} times their bounds"
    )
