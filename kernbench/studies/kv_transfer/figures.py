"""The figures of the study: added times against bounds, and the loads of the links.

A title states the finding, so it is computed from the rows.
"""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kernbench.studies import plots
from kernbench.studies.kv_transfer.link_figure import links
from kernbench.studies.kv_transfer.rows import KvResults, KvRow, RankOrder

_LOOKS = {
    RankOrder.BLOCKS: (plots.VERMILION, "o", 10),
    RankOrder.MIRRORED: (plots.BLUE, "s", 7),
    RankOrder.INTERLEAVED: (plots.GREEN, "^", 4),
}
"""Colour, marker and its size for each order: equal times stay visible."""


def added(results: KvResults) -> Figure:
    """Time that the transfer adds to the time to first token, by tokens: the upper row is a
    transfer after the prefill, the lower row one beside it.
    """
    pairs = results.sizes.pairs
    figure = plots.new_figure(6.4, _finding(results))
    grid = figure.subplots(2, len(pairs), sharex=True, sharey=True, squeeze=False)
    for column, pair in enumerate(pairs):
        for order in results.sizes.orders:
            rows = results.of(pair, order)
            after = [(row.added_after_ps, row.bound_after_ps) for row in rows]
            beside = [(row.added_beside_ps, row.bound_beside_ps) for row in rows]
            _lines(grid[0][column], rows, after)
            _lines(grid[1][column], rows, beside)
        # The computation does not depend on the order.
        alone = results.of(pair, results.sizes.orders[0])
        layers = [row.layer_ps / 1e6 for row in alone]
        grid[1][column].plot(results.sizes.tokens, layers, ":", color=plots.GREY, linewidth=2.5)
        grid[0][column].set_title(f"{pair[0]} to {pair[1]} SIPs")
        grid[1][column].set_xlabel("tokens of the prompt")
    for axes in grid.flat:
        plots.log_axes(axes, results.sizes.tokens, "{:,}".format)
    grid[0][0].set_ylabel("added after the prefill (us)")
    grid[1][0].set_ylabel("added with overlap (us)")
    handles = [
        plots.key(order, colour, marker=marker, markersize=size)
        for order, (colour, marker, size) in _LOOKS.items()
        if order in results.sizes.orders
    ]
    handles.append(plots.key("bound", linestyle="--", linewidth=1))
    handles.append(plots.key("computation of a layer", plots.GREY, linestyle=":", linewidth=2.5))
    plots.legend_below(figure, handles)
    return figure


FIGURES: Mapping[str, Callable[[KvResults], Figure]] = {
    "kv_transfer_added.png": added,
    "kv_transfer_links.png": links,
}
"""The figures by the names of their files."""


def _lines(axes: Axes, rows: Sequence[KvRow], times: Sequence[tuple[int, float]]) -> None:
    colour, marker, size = _LOOKS[rows[0].order]
    tokens = [row.tokens for row in rows]
    measured = [time / 1e6 for time, _ in times]
    axes.plot(tokens, measured, marker=marker, markersize=size, color=colour)
    axes.plot(tokens, [bound / 1e6 for _, bound in times], "--", color="black", linewidth=1)


def _finding(results: KvResults) -> str:
    longest = [row for row in results.rows if row.tokens == results.sizes.tokens[-1]]
    least, most = (choose(longest, key=lambda row: row.added_after_ps) for choose in (min, max))
    hidden = [row for row in results.rows if row.bounds.bytes_ps <= row.layer_ps]
    return (
        f"{results.sizes.layers} layers of {least.tokens:,} tokens: from "
        f"{least.added_after_ps / 1e6:,.0f} us ({least.pair} SIPs, {least.order}) to "
        f"{most.added_after_ps / 1e6:,.0f} us ({most.pair}, {most.order}) after the prefill;\n"
        f"in {len(hidden)} of {len(results.rows)} cases a layer takes longer than its transfer, so "
        "that overlap leaves the last one"
    )
