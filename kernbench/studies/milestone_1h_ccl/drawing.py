"""The drawing of the SIP topologies: SIPs, links, and the way that the data of the ring takes over them."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from dataclasses import dataclass
from itertools import pairwise
from math import cos, hypot, pi, sin
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from kernbench.studies.milestone_1h_ccl.networks import Layout, Network
from kernbench.studies.milestone_1h_ccl.rows import Sweep
from kernbench.studies.plots import BLUE, VERMILION, new_figure

Spot = tuple[float, float]
_BEND = 0.42


def topologies(sweep: Sweep) -> Figure:
    """A panel for each network."""
    figure = new_figure(4.7, _finding(sweep))
    panels = figure.subplots(1, len(sweep.networks), squeeze=False)[0]
    for axes, network, layout in zip(panels, sweep.networks, sweep.layouts, strict=True):
        _panel(axes, network, layout)
    figure.legend(handles=_legend(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def _legend() -> list[Line2D]:
    return [
        Line2D([], [], color="lightgrey", linewidth=6, label="UCIe link, both directions"),
        Line2D(
            [],
            [],
            color=BLUE,
            linewidth=2,
            marker=">",
            label="ring: to the next rank over one link",
        ),
        Line2D(
            [],
            [],
            color=VERMILION,
            linewidth=2,
            linestyle="--",
            marker=">",
            label="ring: forwarded by a SIP between",
        ),
    ]


@dataclass(frozen=True)
class _Span:
    """From SIP to SIP on the paper; `bend` leads a link that goes round the end of a row or column past the SIPs between."""

    start: Spot
    end: Spot
    bend: float

    @classmethod
    def of(cls, network: Network, source: int, target: int) -> "_Span":
        (x, y), (to_x, to_y) = start, end = _spot(network, source), _spot(network, target)
        straight = network.topology == "ring_1d" or abs(to_x - x) + abs(to_y - y) == 1
        return cls(start, end, 0.0 if straight else _BEND if (to_x > x or to_y < y) else -_BEND)

    def beside(self, distance: float) -> "_Span":
        """The same on the right hand of who walks it, so that two directions of a straight link are seen apart."""
        if self.bend:
            return self
        (x, y), (to_x, to_y) = self.start, self.end
        share = distance / hypot(to_x - x, to_y - y)
        aside_x, aside_y = (to_y - y) * share, (x - to_x) * share
        return _Span((x + aside_x, y + aside_y), (to_x + aside_x, to_y + aside_y), self.bend)


def _panel(axes: Axes, network: Network, layout: Layout) -> None:
    for source, target in layout.links:
        if source < target:
            _draw(
                axes,
                _Span.of(network, source, target),
                arrowstyle="-",
                color="lightgrey",
                linewidth=6,
                zorder=1,
            )
    for edge in layout.ring:
        for source, target in pairwise(edge):
            _arrow(axes, _Span.of(network, source, target), direct=len(edge) == 2)
    spots = [_spot(network, sip) for sip in range(network.sips)]
    for sip, (x, y) in enumerate(spots):
        axes.text(
            x,
            y,
            str(sip),
            ha="center",
            va="center",
            fontsize=13,
            fontweight="bold",
            zorder=4,
            bbox={"boxstyle": "square,pad=0.45", "facecolor": "white", "edgecolor": "black"},
        )
    ways = [
        f"{edge[0]} to {edge[-1]} by {', '.join(map(str, edge[1:-1]))}"
        for edge in layout.forwarded()
    ]
    axes.set_title(
        f"{network}\n{'; '.join(ways) or 'every rank beside the next one'}", fontsize=10.5
    )
    axes.set(
        xlim=(-0.6, max(x for x, _ in spots) + 0.4),
        ylim=(min(y for _, y in spots) - 0.6, 0.4),
        aspect="equal",
    )
    axes.axis("off")


def _spot(network: Network, sip: int) -> Spot:
    """Rings as a circle, grids row by row from the top left."""
    if network.topology == "ring_1d":
        radius = max(0.71, network.sips / (2 * pi))
        angle = pi * 3 / 4 - 2 * pi * sip / network.sips
        return radius * (cos(angle) + 0.71), radius * (sin(angle) - 0.71)
    return float(sip % network.w), -float(sip // network.w)


def _arrow(axes: Axes, span: _Span, *, direct: bool) -> None:
    colour, style = (BLUE, "-") if direct else (VERMILION, (0, (3, 1.5)))
    _draw(
        axes,
        span.beside(0.07 if direct else 0.15),
        arrowstyle="-|>",
        color=colour,
        linestyle=style,
        linewidth=2,
        zorder=3,
    )


def _draw(axes: Axes, span: _Span, **look: Any) -> None:
    ends = {} if look["arrowstyle"] == "-" else {"mutation_scale": 16, "shrinkA": 15, "shrinkB": 15}
    axes.add_patch(
        FancyArrowPatch(
            span.start, span.end, connectionstyle=f"arc3,rad={span.bend}", **ends, **look
        )
    )


def _finding(sweep: Sweep) -> str:
    forwarded = [
        network
        for network, layout in zip(sweep.networks, sweep.layouts, strict=True)
        if any(layout.forwarded())
    ]
    if not forwarded:
        return "The ring of ranks passes links between neighbours alone"
    return f"A ring in the order of ranks needs SIPs that forward in {len(forwarded)} of {len(sweep.networks)} topologies"
