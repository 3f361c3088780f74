"""The figure of the links: which bytes pass each of them, and which pairs of SIPs share it."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from math import cos, hypot, pi, sin
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from kernbench.oracle.theory.paths.sip_grid import grid_of
from kernbench.studies import plots
from kernbench.studies.kv_transfer.rows import KvResults, KvRow, LinkLoad, Sides

Position = tuple[float, float]
_ASIDE, _SHORT, _LABEL = 0.07, 0.22, (0.35, 0.25)
"""Distances of an arrow from the line between two SIPs and from each of them, and of its label
from that line, across and up.
"""


def links(results: KvResults) -> Figure:
    """A picture of the SIPs for each pair of sides and order."""
    sizes = results.sizes
    figure = plots.new_figure(0.8 + 2.9 * len(sizes.orders), _finding(results))
    grid = figure.subplots(len(sizes.orders), len(sizes.pairs), squeeze=False)
    for line, order in zip(grid, sizes.orders, strict=True):
        for axes, pair in zip(line, sizes.pairs, strict=True):
            row = results.of(pair, order)[-1]
            _panel(axes, row, _positions(sum(pair), sizes.network))
            title = f"{row.pair} SIPs, {order}: {row.added_after_ps / 1e6:,.0f} us"
            axes.set_title(title, fontsize=10.5)
    box = {"marker": "s", "markersize": 12, "linestyle": ""}
    arrow = {"marker": ">", "linewidth": 2}
    handles = [
        plots.key("SIP of the prefill", plots.ORANGE, **box),
        plots.key("SIP of the decode", plots.SKY, **box),
        plots.key("link of one pair of SIPs", plots.BLUE, **arrow),
        plots.key("link that several pairs share; bytes of a layer", plots.VERMILION, **arrow),
    ]
    plots.legend_below(figure, handles)
    return figure


def _positions(sips: int, network: str) -> list[Position]:
    """A ring is drawn as a circle, a grid row by row from the top left."""
    if network == "ring_1d":
        turns = [pi / 2 - 2 * pi * sip / sips for sip in range(sips)]
        return [(cos(turn), sin(turn)) for turn in turns]
    columns, _ = grid_of(sips)
    return [(1.2 * (sip % columns), -1.2 * (sip // columns)) for sip in range(sips)]


def _panel(axes: Axes, row: KvRow, positions: Sequence[Position]) -> None:
    most = max(link.nbytes for link in row.links)
    for link in row.links:
        _arrow(axes, link, positions, most)
    sides = Sides.of(row.order, row.prefill, row.decode)
    for letter, colour, side in (
        ("P", plots.ORANGE, sides.prefill),
        ("D", plots.SKY, sides.decode),
    ):
        for rank, sip in enumerate(side):
            box = {"boxstyle": "square,pad=0.35", "facecolor": colour, "edgecolor": "black"}
            plots.centred(axes, *positions[sip], f"{letter}{rank}", 10, bbox=box, zorder=3)
    xs, ys = zip(*positions, strict=True)
    axes.set(xlim=(min(xs) - 0.65, max(xs) + 0.65), ylim=(min(ys) - 0.35, max(ys) + 0.35))
    axes.set_aspect("equal")
    axes.axis("off")


def _arrow(axes: Axes, link: LinkLoad, positions: Sequence[Position], most: int) -> None:
    (x, y), (to_x, to_y) = positions[link.source], positions[link.target]
    length = hypot(to_x - x, to_y - y)
    along = (to_x - x) / length, (to_y - y) / length
    # To the right of its direction, so that both directions of a link can be seen.
    aside = along[1] * _ASIDE, -along[0] * _ASIDE
    start, end = (
        (px + aside[0] + sign * along[0] * _SHORT, py + aside[1] + sign * along[1] * _SHORT)
        for px, py, sign in ((x, y, 1), (to_x, to_y, -1))
    )
    colour = plots.VERMILION if len(link.pairs) > 1 else plots.BLUE
    look: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 13, "zorder": 2}
    width = 1 + 4 * link.nbytes / most
    axes.add_patch(FancyArrowPatch(start, end, linewidth=width, color=colour, **look))
    middle = (x + to_x) / 2 + _LABEL[0] * along[1], (y + to_y) / 2 - _LABEL[1] * along[0]
    plots.centred(axes, *middle, plots.size_label(link.nbytes), 8.5, color=colour)


def _finding(results: KvResults) -> str:
    sizes = results.sizes
    tokens = sizes.tokens[-1]
    shares = list[tuple[float, KvRow, KvRow]]()
    for pair in sizes.pairs:
        rows = [results.of(pair, order)[-1] for order in sizes.orders]
        least, most = (choose(rows, key=lambda row: row.added_after_ps) for choose in (min, max))
        shares.append((most.added_after_ps / least.added_after_ps, least, most))
    gain, least, most = max(shares, key=lambda share: share[0])
    return (
        f"{least.pair} SIPs, {tokens:,} tokens: {least.order} SIPs send the cache "
        f"{gain:.1f} times as fast as {most.order},\nwhere {_sharing(most)} share a link"
    )


def _sharing(row: KvRow) -> str:
    count = max(len(link.pairs) for link in row.links)
    return f"{count} pairs" if count > 1 else "no two pairs"
