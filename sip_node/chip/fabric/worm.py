"""Packets on their way through clocked routers, and the paths that they take."""

from typing import TYPE_CHECKING, NamedTuple

from runtime.model.routing import Stage
from sip_node.chip.fabric.packet import Packet

if TYPE_CHECKING:
    from sip_node.chip.fabric.injection import Injection
    from sip_node.chip.fabric.virtual_channels import VirtualNetwork


class PathPlan(NamedTuple):
    """Links with calendars, clocked links from a source to an output that ejects, calendars.

    `latency_ps` is the time of a packet of one flit that starts at a clock edge, alone.
    """

    target: int
    latency_ps: int
    before: tuple[Stage, ...]
    networks: "tuple[VirtualNetwork, ...]"
    after: tuple[Stage, ...]


class PacketPath:
    """A path of packets, which are numbered from 0.

    `injection` is their queue at the source of the first of `networks`; the last one ejects them.
    They pass the links `before` and `after`, which have calendars.

    Packets on different virtual channels may overtake each other. The interface of the target
    delivers them in the order in which they were sent: `held` are those that have arrived before
    the next one, number `due`. `admitted` packets have taken their space at the target; `early`
    ones, with their flits, take it when those before them have.
    """

    __slots__ = (
        "admitted",
        "after",
        "before",
        "due",
        "early",
        "held",
        "injection",
        "latency_ps",
        "networks",
        "sent",
        "target",
    )

    def __init__(self, plan: PathPlan, injection: "Injection | None") -> None:
        self.target, self.latency_ps, self.before, self.networks, self.after = plan
        self.injection = injection
        self.sent = self.due = self.admitted = 0
        self.held: dict[int, Worm] = {}
        self.early: dict[int, int] = {}


class Worm:
    """A packet of `flits` on its way through routers, number `number` of its path.

    Its bytes are at the source from `head_ps` to `tail_ps`.
    """

    __slots__ = ("flits", "head_ps", "networks", "number", "packet", "path", "tail_ps")

    def __init__(
        self, packet: Packet, path: PacketPath, flits: int, head_ps: int, tail_ps: int
    ) -> None:
        self.packet, self.path, self.networks, self.flits = packet, path, path.networks, flits
        self.head_ps, self.tail_ps = head_ps, tail_ps
        self.number = path.sent
        path.sent += 1
