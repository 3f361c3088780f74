"""The drawing of the network between SIPs: a ring as an ellipse, a grid as rows and columns."""

from dataclasses import dataclass
from math import cos, pi, sin

from kernbench.explain.web.geometry import Segment
from runtime.model.sip_fabric import SipFabric
from runtime.model.topology import Topology

_ASPECT = 1.6
_GAP = 0.07
"""Distance of the two directions of a link."""
_STUB = 0.45
"""Length of each end of a link that wraps around a grid."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class SipLoad:
    """A segment of the network, and the port that serves it: its SIP and its name there."""

    sip: int
    port: str
    segment: Segment


class FabricDrawing:
    """SIPs as points and links between them as segments, in units of the distance of two SIPs."""

    def __init__(self, topology: Topology) -> None:
        fabric = SipFabric(topology)
        self.switched = topology.system.sips.fabric == "switch"
        self._grid = fabric.rows > 1 and not self.switched
        self._fabric = fabric
        self._bw_gbs = topology.ucie.bw_gbs
        self.points = [self._point(sip) for sip in range(fabric.sips)]
        self.centre: Point = (0.0, 0.0)
        self.links = [*(self._star() if self.switched else self._direct())]

    def _point(self, sip: int) -> Point:
        if self._grid:
            column, row = self._fabric.grid(sip)
            return float(column), float(row)
        # The distance of neighbours on the circle is about 1.
        radius = max(self._fabric.sips / (2 * pi), 0.5)
        angle = 2 * pi * sip / self._fabric.sips - pi
        return radius * _ASPECT * cos(angle), radius * sin(angle)

    def _star(self) -> list[SipLoad]:
        up = [
            SipLoad(sip, "ucie.switch", self._segment(f"SIP {sip} -> switch", point, self.centre))
            for sip, point in enumerate(self.points)
        ]
        down = [
            # The port of the switch is served by the SIP at its end.
            SipLoad(sip, "switch.out", self._segment(f"switch -> SIP {sip}", self.centre, point))
            for sip, point in enumerate(self.points)
        ]
        return up + down

    def _direct(self) -> list[SipLoad]:
        loads: list[SipLoad] = []
        for link in self._fabric.links:
            name = f"SIP {link.source} -> SIP {link.target}"
            port = link.port.removeprefix("io.")
            a, b = self.points[link.source], self.points[link.target]
            for begin, end in self._lines(a, b):
                loads.append(SipLoad(link.source, port, self._segment(name, begin, end)))
        return loads

    def _lines(self, a: Point, b: Point) -> list[tuple[Point, Point]]:
        """One line; of a link around a grid, the two ends."""
        dx, dy = b[0] - a[0], b[1] - a[1]
        if not self._grid or max(abs(dx), abs(dy)) <= 1:
            return [(a, b)]
        step_x = (dx < 0) - (dx > 0)
        step_y = (dy < 0) - (dy > 0)
        out = a[0] + step_x * _STUB, a[1] + step_y * _STUB
        into = b[0] - step_x * _STUB, b[1] - step_y * _STUB
        return [(a, out), (into, b)]

    def _segment(self, name: str, begin: Point, end: Point) -> Segment:
        (x0, y0), (x1, y1) = begin, end
        length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5 or 1.0
        dx, dy = -(y1 - y0) / length * _GAP, (x1 - x0) / length * _GAP
        return Segment(
            name=name,
            x0=x0 + dx,
            y0=y0 + dy,
            x1=x1 + dx,
            y1=y1 + dy,
            bw_gbs=self._bw_gbs,
        )
