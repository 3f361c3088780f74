"""The figure of the SIP topologies: SIPs, links, and the ring over them."""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from dataclasses import dataclass
from math import cos, hypot, pi, sin
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from kernbench.studies import plots
from kernbench.studies.milestone_1h_ccl.networks import RingLayout, SipNetwork
from kernbench.studies.milestone_1h_ccl.rows import CclResults

Position = tuple[float, float]
_BEND = 0.42


def topologies(results: CclResults) -> Figure:
    """A panel for each network."""
    figure = plots.new_figure(4.5, _finding(results))
    panels = figure.subplots(1, len(results.networks), squeeze=False)[0]
    for axes, network, layout in zip(panels, results.networks, results.layouts, strict=True):
        _panel(axes, network, layout)
    links = plots.key("UCIe link, both directions", "lightgrey", linewidth=6)
    steps = plots.key("ring: to the next SIP", plots.BLUE, linewidth=2, marker=">")
    plots.legend_below(figure, [links, steps])
    return figure


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


def _panel(axes: Axes, network: SipNetwork, layout: RingLayout) -> None:
    for source, target in layout.links:
        # Both directions share one grey line.
        if source < target:
            line = _LinkLine.of(network, source, target)
            _draw(axes, line, arrowstyle="-", color="lightgrey", linewidth=6, zorder=1)
    for source, target in layout.steps:
        line = _LinkLine.of(network, source, target).beside(0.07)
        _draw(axes, line, arrowstyle="-|>", color=plots.BLUE, linewidth=2, zorder=3)
    positions = [_position(network, sip) for sip in range(network.sips)]
    for sip, (x, y) in enumerate(positions):
        box = {"boxstyle": "square,pad=0.45", "facecolor": "white", "edgecolor": "black"}
        plots.centred(axes, x, y, str(sip), 13, fontweight="bold", zorder=4, bbox=box)
    axes.set_title(f"{network}\n{', '.join(map(str, layout.order))}", fontsize=10.5)
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


def _draw(axes: Axes, line: _LinkLine, **look: Any) -> None:
    ends = {} if look["arrowstyle"] == "-" else {"mutation_scale": 16, "shrinkA": 15, "shrinkB": 15}
    curve = f"arc3,rad={line.bend}"
    axes.add_patch(FancyArrowPatch(line.start, line.end, connectionstyle=curve, **ends, **look))


def _finding(results: CclResults) -> str:
    moved = sum(
        layout.order != tuple(range(network.sips))
        for network, layout in zip(results.networks, results.layouts, strict=True)
    )
    is_direct = all(set(layout.steps) <= set(layout.links) for layout in results.layouts)
    first = "Every step of the ring is one link" if is_direct else "Steps of the ring are forwarded"
    return f"{first}; in {moved} of {len(results.networks)} topologies it leaves the order of ranks"
