"""Packets on their way through clocked routers: their cycles and flits, their paths, their counts.

All routers share one clock, whose cycle n begins at n periods. A flit occupies a link for a whole
number of cycles; delays are rounded up to whole cycles, at each hop once.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from runtime.core.simtime import PS_PER_NS, exact
from runtime.model.routing import Stage
from runtime.model.schema.topology_schema import NocConfig
from sip_node.chip.fabric.packet import EndpointLike, Packet
from sip_node.chip.records.time_bins import TimeBins
from sip_node.kernel.containers.int_array import IntArray
from sip_node.kernel.containers.linked_list import Linked

EJECTED, LEFT = 0, 1
"""Steps of the fabric: the last flit of a packet has left the routers, or its source."""


class Pipeline(NamedTuple):
    """The stages of a router in cycles.

    A head flit is routed in `route` cycles, requests the switch `allocate` cycles after it has got
    a virtual channel, and leaves the router `leave` cycles after it has won the switch.
    """

    route: int
    allocate: int
    leave: int


def pipeline(stages: int) -> Pipeline:
    """The pipeline of a router with `stages` cycles from input to output (Dally & Towles, ch. 16).

        4   route | allocate VC | allocate switch | traverse
        3   look-ahead routing: the route is known when the head arrives
        2   speculation: a VC and the switch are allocated in one cycle
        1   all in one cycle

    A node with more stages only delays its flits for longer.
    """
    return Pipeline(
        route=int(stages >= 4), allocate=int(stages >= 3), leave=min(stages, 2) + max(stages - 4, 0)
    )


class NocClock:
    """The clock and the flits of `noc`: converts times, bytes and bandwidths to these."""

    def __init__(self, noc: NocConfig) -> None:
        # One clock for all routers: without domains of their own they need no synchronisers between
        # them.
        self.period_ps = _ceil(PS_PER_NS / exact(noc.clock_ghz))
        self.flit_bytes = noc.flit_bytes

    def cycle(self, time_ps: int) -> int:
        """The first cycle that begins at `time_ps` or later."""
        return (time_ps + self.period_ps - 1) // self.period_ps

    def flits(self, nbytes: int) -> int:
        """The flits of a packet; a packet without bytes has a head as well."""
        return max(1, (nbytes + self.flit_bytes - 1) // self.flit_bytes)

    def delay_cycles(self, delay_ps: int) -> int:
        """The cycles of a delay, at least one: a flit is in a register at each end of a wire."""
        return max(1, self.cycle(delay_ps))

    def flit_cycles(self, bw_gbs: float) -> int:
        """The cycles for which a flit occupies a link, at least one."""
        period_ns = Fraction(self.period_ps, PS_PER_NS)
        # Whole cycles: a link is wires between two registers, which change at clock edges only.
        return max(1, _ceil(self.flit_bytes / exact(bw_gbs) / period_ns))


def _ceil(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)


class PathPlan(NamedTuple):
    """Links with calendars, clocked links from a source to an output that ejects, calendars.

    `networks` are the virtual networks of the clocked links. `routing` are the cycles for which the
    router before each of these links routes a head; the first of them has none. `latency_ps` is the
    time of a packet of one flit that starts at a clock edge, alone.
    """

    target: int
    latency_ps: int
    before: tuple[Stage, ...]
    networks: tuple[Any, ...]
    routing: tuple[int, ...]
    after: tuple[Stage, ...]


class Departures:
    """The `nbytes` that a node has sent and that have not left it; `left(packet)` when they do."""

    def __init__(self, left: Callable[[Packet], None]) -> None:
        self.left, self.nbytes = left, 0


class Source(Protocol):
    """The queue of packets in front of the first clocked link of a path."""

    def put(self, worm: "Worm") -> None:
        """Send a packet after those before it."""


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
        self, plan: PathPlan, injection: Source | None, departures: Departures | None
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


class FlitCounters(Linked):
    """The counters of a clocked link: flits, bytes, and the waits of packets for it.

    A flit occupies it for `flit_cycles`.

    In a run with records, `bins` are its load over time and `packets` the number of those that it
    has carried.
    """

    def __init__(self, name: str, index: int, flit_cycles: int, clock: NocClock) -> None:
        super().__init__()
        self.name, self.index, self.flit_cycles = name, index, flit_cycles
        self._flit_bytes, self._period_ps = clock.flit_bytes, clock.period_ps
        self.flits = self.nbytes = self.queued_cycles = self.packets = 0
        self.bins: TimeBins | None = None

    def serialisation_ps(self, nbytes: int) -> int:
        """The time that the flits of one packet of `nbytes` take."""
        flits = (nbytes + self._flit_bytes - 1) // self._flit_bytes
        return flits * self.flit_cycles * self._period_ps

    def record(self, worm: Worm, now: int, waited: int) -> None:
        """A flit of a packet leaves in cycle `now`.

        A head has `waited` for cycles; of other flits, `waited` is negative.
        """
        period_ps, packet = self._period_ps, worm.packet
        is_head = waited >= 0
        queued_ps = waited * period_ps if is_head else 0
        if self.bins is not None:
            end_ps = (now + self.flit_cycles) * period_ps
            nbytes = worm.nbytes if is_head else 0
            self.bins.add(now * period_ps, end_ps, nbytes, queued_ps, is_head)
        if is_head:
            self.packets += 1
            assert packet.train is not None, "a packet with a train: a run with records"
            queued_ps = packet.train.at_router(worm.hop, self.packets, queued_ps)
            if queued_ps:
                packet.queued(queued_ps, self.name)

    @property
    def busy_ps(self) -> int:
        """The time for which the link has carried flits."""
        return self.flits * self.flit_cycles * self._period_ps

    @property
    def queued_ps(self) -> int:
        """The time for which heads of packets have waited for it."""
        return self.queued_cycles * self._period_ps
