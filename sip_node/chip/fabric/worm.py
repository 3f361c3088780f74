"""Packets on their way through clocked routers, and the paths that they take."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from runtime.model.routing import Stage
from sip_node.chip.fabric.packet import Packet
from sip_node.kernel.int_array import IntArray

if TYPE_CHECKING:
    from sip_node.chip.fabric.fabric import EndpointLike
    from sip_node.chip.fabric.injection import Injection
    from sip_node.chip.fabric.virtual_channels import VirtualNetwork

EJECTED, LEFT = 0, 1
"""Steps of the fabric: the last flit of a packet has left the routers, or its source."""


class PathPlan(NamedTuple):
    """Links with calendars, clocked links from a source to an output that ejects, calendars.

    `routing` are the cycles for which the router before each clocked link routes a head; the first
    of these links has none. `latency_ps` is the time of a packet of one flit that starts at a clock
    edge, alone.
    """

    target: int
    latency_ps: int
    before: tuple[Stage, ...]
    networks: "tuple[VirtualNetwork, ...]"
    routing: tuple[int, ...]
    after: tuple[Stage, ...]


class Departures:
    """The `nbytes` that a node has sent and that have not left it; `left(packet)` when they do."""

    def __init__(self, left: Callable[[Packet], None]) -> None:
        self.left, self.nbytes = left, 0


class PacketPath:
    """A path of packets, which are numbered from 0.

    `injection` is their queue at the source of the first of `networks`; the last one ejects them.
    They pass the links `before` and `after`, which have calendars. `departures` are those of its
    source, if it is notified.

    Packets on different virtual channels may overtake each other. The interface of the target
    delivers them in the order in which they were sent: `held` are those that have arrived before
    the next one, number `due`. `admitted` packets have taken their space at the target; `early`
    ones, with their flits, take it when those before them have.
    """

    def __init__(
        self, plan: PathPlan, injection: "Injection | None", departures: Departures | None
    ) -> None:
        self.target, self.latency_ps = plan.target, plan.latency_ps
        self.before, self.networks, self.after = plan.before, plan.networks, plan.after
        self.injection, self.departures = injection, departures
        self.routing = IntArray()
        for cycles in plan.routing:
            self.routing.append(cycles)
        # It may be attached after the first packet is sent.
        self.endpoint: EndpointLike | None = None
        self.sent = self.due = self.admitted = 0
        self.held: dict[int, Worm] = {}
        self.early: dict[int, int] = {}


class Worm:
    """A packet of `flits` on its way through routers, number `number` of its path.

    Its bytes are at the source from `head_ps` to `tail_ps`; the head can leave it in `cycle`.
    `hop` is the index of the next network of its head; of a packet outside the routers, that of its
    next link with a calendar.
    """

    packet: Packet
    path: PacketPath
    flits: int
    nbytes: int
    head_ps: int
    tail_ps: int
    cycle: int
    hop: int
    number: int


def new_worm(packet: Packet, path: PacketPath, flits: int, tail_ps: int) -> Worm:
    """A packet that is sent on a path; in C, without the call of a constructor."""
    worm = Worm.__new__(Worm)
    worm.packet, worm.path, worm.flits, worm.nbytes = packet, path, flits, packet.size
    worm.tail_ps, worm.head_ps, worm.cycle, worm.hop, worm.number = tail_ps, 0, 0, 0, 0
    return worm
