"""The comparison with ASTRA-sim: the terms of the time, with the same alpha and bandwidth."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from kernbench.oracle.theory.alpha_beta import AlphaBeta
from kernbench.studies import plots
from kernbench.studies.milestone_1h_ccl.reference import (
    ALPHA_NS,
    ASTRA_SIM,
    GBS,
    AstraSimTime,
    explained,
)
from kernbench.studies.milestone_1h_ccl.rows import CclResults, CclRow
from runtime.core.simtime import PS_PER_NS

PARTS = (
    ("alphas, commands", plots.BLUE),
    ("bytes over the link", plots.SKY),
    ("endpoints of ASTRA-sim", plots.ORANGE),
    ("additions, local memory", plots.GREEN),
    ("waiting for credits", plots.VERMILION),
    ("load and store of the buffer", plots.GREY),
)
"""Parts of a bar with their colours, in the order in which they are stacked."""
_OPEN: dict[str, Any] = {"facecolor": "white", "edgecolor": "black", "hatch": "////"}


class TimeBar(NamedTuple):
    """A bar of the figure, in us: the times of `PARTS`, and the measured time or 0."""

    label: str
    parts_us: tuple[float, ...]
    measured_us: float


def reference(results: CclResults) -> Figure:
    """A panel for each time of ASTRA-sim."""
    rows = results.of("reference")
    panels = [(each, _bars(each, rows)) for each in ASTRA_SIM]
    # Panels in proportion to their bars, so that all bars have one thickness.
    heights = [len(bars) + 0.8 for _, bars in panels]
    figure = plots.new_figure(2.4 + 0.5 * sum(heights), _finding(rows))
    columns = figure.subplots(len(panels), 1, height_ratios=heights)
    for axes, (each, bars) in zip(columns, panels, strict=True):
        _panel(axes, each, bars)
    columns[-1].set_xlabel("time of the all-reduce (us)")
    legend = [Patch(color=colour, label=name) for name, colour in PARTS]
    legend.append(Patch(label="measured, not explained by the terms", **_OPEN))
    plots.legend_below(figure, legend, 4)
    return figure


def _textbook_us(run: AstraSimTime) -> float:
    form = AlphaBeta(Fraction(ALPHA_NS) * PS_PER_NS, Fraction(GBS))
    return float(form.ring_all_reduce_ps(run.ranks, run.nbytes)) / 1e6


def _bars(each: AstraSimTime, rows: Sequence[CclRow]) -> list[TimeBar]:
    steps = 2 * (each.ranks - 1)
    alpha_us = steps * ALPHA_NS / 1000
    textbook = _textbook_us(each)
    # ASTRA-sim has the first four parts only: alpha, bytes, endpoints, local memory.
    theirs = explained(each.ranks, each.nbytes)
    bars = [
        TimeBar("alpha-beta form", (alpha_us, textbook - alpha_us), 0),
        TimeBar("ASTRA-sim", tuple(ns / 1000 for ns in theirs), each.time_us),
    ]
    for row in rows:
        if (row.network.sips, row.nbytes) == (each.ranks, each.nbytes) and row.parts is not None:
            parts = row.parts
            first = parts.alpha_ps, parts.moving_ps, 0.0
            ours = *first, parts.add_ps, parts.credit_ps, parts.memory_ps
            label = f"kernbench, {row.slots} slots"
            bars.append(TimeBar(label, tuple(ps / 1e6 for ps in ours), row.time_ps / 1e6))
    return bars


def _panel(axes: Axes, each: AstraSimTime, bars: Sequence[TimeBar]) -> None:
    for index, bar in enumerate(bars):
        left = 0.0
        for us, (_, colour) in zip(bar.parts_us, PARTS, strict=False):
            axes.barh(index, us, 0.7, left=left, color=colour)
            left += us
        # The hatched rest shows how much of the measured time the terms leave open.
        if bar.measured_us > left:
            rest_us = bar.measured_us - left
            axes.barh(index, rest_us, 0.7, left=left, linewidth=0, **_OPEN)
        label = f"  {bar.measured_us or left:,.1f} us"
        axes.text(max(left, bar.measured_us), index, label, va="center", fontsize=9.5)
    axes.set_yticks(range(len(bars)), [bar.label for bar in bars])
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_xlim(0, 1.12 * max(bar.measured_us or sum(bar.parts_us) for bar in bars))
    axes.set_title(
        f"{each.ranks} SIPs, {each.nbytes >> 20} MiB a rank, {GBS:g} GB/s, {ALPHA_NS:g} ns a hop",
        fontsize=11,
        loc="left",
    )
    plots.value_grid(axes, "x")
    axes.spines[["top", "right"]].set_visible(False)


def _finding(rows: Sequence[CclRow]) -> str:
    first = ASTRA_SIM[0]
    ours = [row for row in rows if (row.network.sips, row.nbytes) == (first.ranks, first.nbytes)]
    best, worst = (pick(row.time_ps for row in ours) / 1e6 for pick in (min, max))
    form = _textbook_us(first)
    return (
        f"{first.nbytes >> 20} MiB on {first.ranks} ranks: closed form {form:.1f} us, "
        f"ASTRA-sim {first.time_us:.1f} us, kernbench {best:.1f} to {worst:.1f} us:\n"
        "ASTRA-sim pays alpha for each of its chunks, kernbench where a ring has few slots"
    )
