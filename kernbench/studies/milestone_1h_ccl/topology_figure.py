"""The figure of the SIP topologies: SIPs, links, and the paths of the ring over them."""

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

from kernbench.studies.milestone_1h_ccl.networks import RingPaths, SipNetwork
from kernbench.studies.milestone_1h_ccl.rows import CclResults
from kernbench.studies.plots import BLUE, VERMILION, new_figure

Position = tuple[float, float]
_BEND = 0.42


def topologies(results: CclResults) -> Figure:
    """A panel for each network."""
    figure = new_figure(4.5, _finding(results))
    panels = figure.subplots(1, len(results.networks), squeeze=False)[0]
    for axes, network, paths in zip(panels, results.networks, results.layouts, strict=True):
        _panel(axes, network, paths)
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
            label="ring: forwarded by a SIP in between",
        ),
    ]


@dataclass(frozen=True)
class _LinkLine:
    """A line between two SIPs; `bend` curves a wrap-around link past the SIPs between its ends."""

    start: Position
    end: Position
    bend: float

    @classmethod
    def of(cls, network: SipNetwork, source: int, target: int) -> "_LinkLine":
        (x, y), (to_x, to_y) = start, end = _position(network, source), _position(network, target)
        # In a grid only neighbours are joined by a straight line; other links wrap around.
        straight = network.topology == "ring_1d" or abs(to_x - x) + abs(to_y - y) == 1
        return cls(start, end, 0.0 if straight else _BEND if (to_x > x or to_y < y) else -_BEND)

    def beside(self, distance: float) -> "_LinkLine":
        """The line moved to the right of its direction, so that two directions do not overlap."""
        # A curved link carries one direction of the ring at most.
        if self.bend:
            return self
        (x, y), (to_x, to_y) = self.start, self.end
        share = distance / hypot(to_x - x, to_y - y)
        aside_x, aside_y = (to_y - y) * share, (x - to_x) * share
        return _LinkLine((x + aside_x, y + aside_y), (to_x + aside_x, to_y + aside_y), self.bend)


def _panel(axes: Axes, network: SipNetwork, paths: RingPaths) -> None:
    for source, target in paths.links:
        # Both directions share one grey line.
        if source < target:
            _draw(
                axes,
                _LinkLine.of(network, source, target),
                arrowstyle="-",
                color="lightgrey",
                linewidth=6,
                zorder=1,
            )
    for path in paths.ring:
        for source, target in pairwise(path):
            _arrow(axes, _LinkLine.of(network, source, target), direct=len(path) == 2)
    positions = [_position(network, sip) for sip in range(network.sips)]
    for sip, (x, y) in enumerate(positions):
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
    detours = [
        f"{path[0]} to {path[-1]} via {', '.join(map(str, path[1:-1]))}"
        for path in paths.forwarded()
    ]
    axes.set_title(
        f"{network}\n{'; '.join(detours) or 'every rank is a neighbour of the next'}", fontsize=10.5
    )
    axes.set(
        xlim=(-0.6, max(x for x, _ in positions) + 0.4),
        ylim=(min(y for _, y in positions) - 0.6, 0.4),
        aspect="equal",
    )
    axes.axis("off")


def _position(network: SipNetwork, sip: int) -> Position:
    """Rings are drawn as a circle, grids row by row from the top left."""
    if network.topology == "ring_1d":
        radius = max(0.71, network.sips / (2 * pi))
        angle = pi * 3 / 4 - 2 * pi * sip / network.sips
        return radius * (cos(angle) + 0.71), radius * (sin(angle) - 0.71)
    return float(sip % network.w), -float(sip // network.w)


def _arrow(axes: Axes, line: _LinkLine, *, direct: bool) -> None:
    colour, style = (BLUE, "-") if direct else (VERMILION, (0, (3, 1.5)))
    _draw(
        axes,
        line.beside(0.07 if direct else 0.15),
        arrowstyle="-|>",
        color=colour,
        linestyle=style,
        linewidth=2,
        zorder=3,
    )


def _draw(axes: Axes, line: _LinkLine, **look: Any) -> None:
    ends = {} if look["arrowstyle"] == "-" else {"mutation_scale": 16, "shrinkA": 15, "shrinkB": 15}
    axes.add_patch(
        FancyArrowPatch(
            line.start, line.end, connectionstyle=f"arc3,rad={line.bend}", **ends, **look
        )
    )


def _finding(results: CclResults) -> str:
    forwarded = [
        network
        for network, paths in zip(results.networks, results.layouts, strict=True)
        if any(paths.forwarded())
    ]
    if not forwarded:
        return "A ring in the order of ranks needs links between neighbours only"
    return (
        "A ring in the order of ranks needs SIPs that forward "
        f"in {len(forwarded)} of {len(results.networks)} topologies"
    )
