"""The SIP topologies that are compared, and how the ring of ranks lies in them."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from msgspec import Struct

from runtime.model.routing import SipFabric
from runtime.model.topology import parse_topology

Edge = tuple[int, ...]
"""The SIPs from a rank to the next one, both included: more than two where others forward."""


class Network(Struct, frozen=True, forbid_unknown_fields=True):
    """SIPs in a grid of `w` columns and `h` rows, joined as `topology` of `system.sips` says."""

    topology: str
    w: int
    h: int

    def __str__(self) -> str:
        return (
            f"{self.topology} {self.sips}"
            if self.topology == "ring_1d"
            else f"{self.topology} {self.w}x{self.h}"
        )

    @property
    def sips(self) -> int:
        """How many there are."""
        return self.w * self.h

    @property
    def section(self) -> dict[str, Any]:
        """The values of `system.sips` in the topology file."""
        grid = {"w": None, "h": None} if self.topology == "ring_1d" else {"w": self.w, "h": self.h}
        return {"count": self.sips, "topology": self.topology, **grid}


NETWORKS = (
    Network("ring_1d", 4, 1),
    Network("torus_2d", 2, 2),
    Network("torus_2d", 3, 3),
    Network("mesh_2d_no_wrap", 2, 2),
)
"""Of the sweep over sizes."""


class Layout(Struct, frozen=True, forbid_unknown_fields=True):
    """What the links of a network are and which way the ring takes over them.

    `links` are (source, target), each a direction of its own. `ring` has the way from each rank to the next.
    """

    links: tuple[tuple[int, int], ...]
    ring: tuple[Edge, ...]

    @classmethod
    def of(cls, topology_yaml: str, sips: int) -> "Layout":
        """The layout in a topology file for so many SIPs."""
        fabric = SipFabric(parse_topology(topology_yaml, "topology.yaml", sips))
        ring = tuple(fabric.path(rank, (rank + 1) % sips) for rank in range(sips))
        return cls(tuple((link.source, link.target) for link in fabric.links), ring)

    @property
    def remaining_hops(self) -> tuple[int, ...]:
        """Links between each rank and the next."""
        return tuple(len(edge) - 1 for edge in self.ring)

    @property
    def busiest(self) -> int:
        """How many ways of the ring pass the busiest link."""
        return max(Counter(link for edge in self.ring for link in pairwise(edge)).values())

    def forwarded(self) -> Iterator[Edge]:
        """The ways of the ring on which other SIPs forward."""
        return (edge for edge in self.ring if len(edge) > 2)
