"""The parts of a SIP that are down: which exist in its plan, and are not used.

A cube that is down is neither used nor passed: all of its ports are down. A PE that is down is not
used, nor is its HBM slice; its router passes packets of others. A UCIe port or a link is down in
both directions, with the port at its other end.
"""

import re
from collections.abc import Iterable
from functools import cached_property

from runtime.model.cube_plan import SIDES
from runtime.model.schema.quantities import Side
from runtime.model.sip_plan import OPPOSITE, SipPlan

_ROUTERS = re.compile(r"cube(\d+)\.router\.r(\d+)c(\d+)->cube\1\.router\.r(\d+)c(\d+)")
_PORT = re.compile(r"cube(\d+)\.ucie\.([NESW])")
_IO_PORT = re.compile(r"io\.ucie\.mesh(\d+)")
_CUBE, _PE = re.compile(r"cube(\d+)"), re.compile(r"cube(\d+)\.pe(\d+)")
_SIP_PORT = re.compile(r"io\.ucie\.(sip\d+|switch)")
_ENDS = (_PORT, _IO_PORT)


def may_be_down(name: str) -> bool:
    """Whether a part of a SIP can be down: one without which the rest has routes."""
    patterns = (_ROUTERS, _PORT, _IO_PORT, _CUBE, _PE, _SIP_PORT)
    if any(pattern.fullmatch(name) for pattern in patterns):
        return True
    ends = name.split("->")
    return len(ends) == 2 and all(any(kind.fullmatch(end) for kind in _ENDS) for end in ends)


class DownParts:
    """The cubes, PEs, UCIe ports and links of routers of a SIP that are down."""

    def __init__(self, plan: SipPlan, names: Iterable[str]) -> None:
        self._plan = plan
        self.cubes = frozenset[int]()
        self.pes = frozenset[tuple[int, int]]()
        self.ports: frozenset[tuple[int, Side]] = frozenset()
        self._router_links: dict[int, set[tuple[int, int]]] = {}
        for name in sorted(names):
            self._add(name)

    def __bool__(self) -> bool:
        return bool(self.cubes or self.pes or self.ports or self._router_links)

    def router_links(self, cube: int) -> frozenset[tuple[int, int]]:
        """The links of a cube that are down, each as two routers of its grid, both ways."""
        return frozenset(self._router_links.get(cube, ()))

    @cached_property
    def has_detours(self) -> bool:
        """Whether a route of a uniform SIP may pass what is down."""
        return bool(self.ports or self._router_links)

    def _add(self, name: str) -> None:
        if match := _CUBE.fullmatch(name):
            cube = int(match[1])
            self.cubes |= {cube}
            self._add_ports(cube)
        elif match := _PE.fullmatch(name):
            self.pes |= {(int(match[1]), int(match[2]))}
        elif match := _ROUTERS.fullmatch(name):
            cube, *cells = map(int, match.groups())
            a, b = (self._router(*cells[:2]), self._router(*cells[2:]))
            self._router_links.setdefault(cube, set()).update({(a, b), (b, a)})
        else:
            # A port, or a link between two.
            self._add_end(name.partition("->")[0])

    def _add_ports(self, cube: int) -> None:
        for side in SIDES:
            self._add_port(cube, side)

    def _add_end(self, name: str) -> None:
        if match := _PORT.fullmatch(name):
            self._add_port(int(match[1]), SIDES["NESW".index(match[2])])
        elif match := _IO_PORT.fullmatch(name):
            plan, lane = self._plan, int(match[1])
            for cube in range(plan.topology.cubes):
                at_edge = plan.edge_distance(cube) == 0
                if at_edge and plan.mesh_port(cube) == plan.io_noc + 1 + lane:
                    self._add_port(cube, plan.edge)

    def _add_port(self, cube: int, side: Side) -> None:
        beside = self._plan.beside(cube, side)
        if beside is None:
            return
        ports: set[tuple[int, Side]] = {(cube, side)}
        if beside >= 0:
            ports.add((beside, OPPOSITE[side]))
        self.ports |= ports

    def _router(self, row: int, col: int) -> int:
        routers = self._plan.plan.grid.routers
        return next(
            index for index, each in enumerate(routers) if (each.row, each.col) == (row, col)
        )
