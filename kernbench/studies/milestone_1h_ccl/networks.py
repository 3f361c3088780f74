"""The SIP topologies of the study, and the ring of ranks in them."""

from itertools import pairwise
from typing import Any

from msgspec import Struct

from runtime.ccl.orders import best_order
from runtime.ccl.topologies import ring_1d
from runtime.model.sip_fabric import SipFabric
from runtime.model.topology import parse_topology


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


class RingLayout(Struct, frozen=True, forbid_unknown_fields=True):
    """The links of a network, and the ring over them.

    `links` are (source, target); each direction is a link of its own. `order` has the SIPs in the
    order of the ring, whose end is joined to its begin.
    """

    links: tuple[tuple[int, int], ...]
    order: tuple[int, ...]

    @classmethod
    def of(cls, topology_yaml: str, sips: int) -> "RingLayout":
        """The ring in a topology file with this number of SIPs."""
        # The model's own order: the figure shows what is simulated.
        fabric = SipFabric(parse_topology(topology_yaml, "topology.yaml", sips))
        order = best_order(range(sips), fabric, "ring_1d", ring_1d, (sips, 1))
        return cls(tuple((link.source, link.target) for link in fabric.links), order)

    @property
    def steps(self) -> tuple[tuple[int, int], ...]:
        """Pairs of each SIP and the next one of the ring."""
        return tuple(pairwise((*self.order, self.order[0])))
