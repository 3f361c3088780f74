"""The figure of the study: time by part, beside the bounds, for each number of SIPs."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from kernbench.studies import plots
from kernbench.studies.llama70b_layer.rows import LayerResults, LayerRow
from kernbench.studies.study_results import sip_count

COLOURS = {
    "qkv": ("norm, QKV, rotation", plots.BLUE),
    "attention": ("attention", plots.SKY),
    "output": ("output projection", plots.GREEN),
    "all_reduce_1": ("all-reduce", plots.GREY),
    "gate_up": ("norm, gate and up", plots.ORANGE),
    "down": ("down", plots.VERMILION),
    "all_reduce_2": ("all-reduce", plots.PURPLE),
}
"""The label and colour of each part."""
_WIDTH = 0.38


def time_by_part(results: LayerResults) -> Figure:
    """Stacked bars: the measured parts, and beside them their bounds."""
    rows = results.headline
    figure = plots.new_figure(6.0, _finding(rows))
    groups = [
        group
        for group in ([row for row in rows if row.is_decode is each] for each in (True, False))
        if group
    ]
    panels = figure.subplots(1, len(groups), squeeze=False)[0]
    for axes, group in zip(panels, groups, strict=True):
        _panel(axes, group)
    patches = [Patch(color=colour, label=name) for name, colour in COLOURS.values()]
    bounds = "right bar: the bounds of the parts"
    patches.append(Patch(color=plots.GREY, alpha=plots.PALE, label=bounds))
    figure.legend(handles=patches, loc="outside lower center", ncols=4)
    return figure


def _panel(axes: Axes, rows: Sequence[LayerRow]) -> None:
    highest = max(row.time_ps for row in rows) / 1e6
    for place, row in enumerate(rows):
        bottom = bound_bottom = 0.0
        for part in row.parts:
            colour = COLOURS[part.name][1]
            time_us, bound_us = part.time_ps / 1e6, part.bound_ps / 1e6
            axes.bar(place - _WIDTH / 2, time_us, _WIDTH, bottom, color=colour)
            right = place + _WIDTH / 2
            axes.bar(right, bound_us, _WIDTH, bound_bottom, color=colour, alpha=plots.PALE)
            bottom, bound_bottom = bottom + time_us, bound_bottom + bound_us
        axes.text(
            place,
            bottom + highest / 100,
            f"{bottom:,.1f} µs\n{row.bound_ps / row.time_ps:.0%} of bound\n"
            f"{row.tokens_per_s:,.0f} tokens/s",
            ha="center",
            va="bottom",
            fontsize=9,
        )
    first = rows[0]
    axes.set_title(
        f"decode, {first.context:,} tokens of context"
        if first.is_decode
        else f"prefill of {first.tokens:,} tokens"
    )
    axes.set_xticks(range(len(rows)), [sip_count(row.sips) for row in rows])
    axes.set_ylim(0, highest * 1.2)
    axes.set_ylabel("time of one layer (µs)")
    plots.value_grid(axes, "y")


def _finding(rows: Sequence[LayerRow]) -> str:
    decodes = [row for row in rows if row.is_decode] or rows
    first, last = decodes[0], decodes[-1]
    gain = first.time_ps / last.time_ps
    faster = f": {gain:.1f} times as fast as {first.sips}" if len(decodes) > 1 else ""
    return (
        f"{sip_count(last.sips)}{faster}; "
        f"all-reduces are {last.exposed_ps / last.time_ps:.0%} of the decode"
    )


FIGURES: Mapping[str, Callable[[LayerResults], Figure]] = {"llama70b_layer.png": time_by_part}
"""Functions that draw, by file name."""
