"""The SIP topologies of the study, and the paths of the ring of ranks in them."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from msgspec import Struct

from runtime.model.sip_fabric import SipFabric
from runtime.model.topology import parse_topology

SipPath = tuple[int, ...]
"""The SIPs from a rank to the next, both included: more than two if others forward."""


class SipNetwork(Struct, frozen=True, forbid_unknown_fields=True):
    """A grid of SIPs, `w` columns and `h` rows; `topology` is that of `system.sips`."""

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
        """Number of SIPs."""
        return self.w * self.h

    @property
    def section(self) -> dict[str, Any]:
        """The values of `system.sips` in the topology file."""
        grid = {"w": None, "h": None} if self.topology == "ring_1d" else {"w": self.w, "h": self.h}
        return {"count": self.sips, "topology": self.topology, **grid}


NETWORKS = (
    SipNetwork("ring_1d", 4, 1),
    SipNetwork("torus_2d", 2, 2),
    SipNetwork("torus_2d", 3, 3),
    SipNetwork("mesh_2d_no_wrap", 2, 2),
)
"""The networks of the part `size`."""


class RingPaths(Struct, frozen=True, forbid_unknown_fields=True):
    """The links of a network, and the paths of the ring over them.

    `links` are (source, target); each direction is a link of its own. `ring` has the path from each
    rank to the next.
    """

    links: tuple[tuple[int, int], ...]
    ring: tuple[SipPath, ...]

    @classmethod
    def of(cls, topology_yaml: str, sips: int) -> "RingPaths":
        """The paths in a topology file with this number of SIPs."""
        # The model's own routes: the figure shows what is simulated, the closed forms use the hops.
        fabric = SipFabric(parse_topology(topology_yaml, "topology.yaml", sips))
        ring = tuple(fabric.path(rank, (rank + 1) % sips) for rank in range(sips))
        return cls(tuple((link.source, link.target) for link in fabric.links), ring)

    @property
    def hops(self) -> tuple[int, ...]:
        """Links between each rank and the next."""
        return tuple(len(path) - 1 for path in self.ring)

    @property
    def busiest(self) -> int:
        """Number of paths of the ring over the link that most of them share."""
        # A path is directed, and so is a link: (a, b) and (b, a) do not share bandwidth.
        return max(Counter(link for path in self.ring for link in pairwise(path)).values())

    def forwarded(self) -> Iterator[SipPath]:
        """The paths of the ring on which other SIPs forward."""
        return (path for path in self.ring if len(path) > 2)
