"""The fabric of one SIP with clocked routers, finite buffers and credits; see `router`.

It has the interface of `Fabric`. A packet is accepted by its endpoint when its last flit has
arrived, so its tail is there with it. A full buffer stops the link before it, and in the end the
source: packets wait there without a limit.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import sip_node.chip.fabric.clocked.worm as worms
import sip_node.chip.fabric.packet as packets
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes, Stage
from runtime.model.sip_fabric import SipFabric
from runtime.model.virtual_layers import VirtualLayers
from sip_node.chip.fabric.clocked.clocked_network import ClockedNetwork, CreditedPaths, PathKey
from sip_node.chip.fabric.clocked.stalled import StalledPacket, network_name, stalled_packets
from sip_node.chip.fabric.clocked.virtual_channels import VirtualNetwork
from sip_node.chip.fabric.clocked.worm import Departures, FlitCounters, PacketPath, Worm
from sip_node.chip.fabric.fabric import link_server
from sip_node.chip.fabric.packet import EndpointLike, FabricTransfer, Packet
from sip_node.chip.fabric.server import FifoServer, Server
from sip_node.chip.records.link_loads import LinkLoads
from sip_node.kernel.component import Component
from sip_node.pdes.sender import Sender

if TYPE_CHECKING:
    from sip_node.chip.bounds.send_bounds import SendBounds
    from sip_node.pdes.engine import Engine

# Steps of a packet, beside those of `worms`: it is at a link with a calendar before the routers, or
# behind them.
_BEFORE, _BEHIND = 2, 3

LinkCounters = Server | FlitCounters
"""Counters of a link, with a calendar or a clock."""


class CreditedFabric(Component):
    """Routers, links, routes and endpoints of one SIP."""

    restores_order = True
    """Whether an endpoint gets the packets of a path in the order in which they were sent."""

    def __init__(  # noqa: PLR0917 - the parts of a chip, as for `Fabric`
        self,
        engine: "Engine",
        graph: ChipGraph,
        routes: ChipRoutes,
        layers: VirtualLayers,
        sips: SipFabric,
        sip: int,
        send_bounds: "SendBounds",
        links: Mapping[str, type[Server]],
    ) -> None:
        self.join(engine)
        self._graph, self._layers = graph, layers
        self._sip, self._send_bounds, self._senders = sip, send_bounds, send_bounds.in_flight
        self._routes = CreditedPaths(graph, routes, layers, sips, sip)
        self._clock = self._routes.timing.clock
        self._network = ClockedNetwork(graph, self._routes.timing, self)
        self._servers = {
            link.index: link_server(graph, link, links)
            for link in graph.links
            if self._routes.timing.has_calendar(link.index)
        }
        self._paths: dict[PathKey, PacketPath] = {}
        self._path_of: dict[tuple[int, int, int, int, int], PacketPath] = {}
        self._endpoints: dict[int, EndpointLike] = {}
        self._capacity_flits: dict[int, int] = {}
        self._departures: dict[int, Departures] = {}
        self._keeps_order = self.restores_order
        self.sent = self.delivered = 0
        self.records = False
        """Whether packets have trains, in a run with records."""

    def record(self, loads: LinkLoads) -> None:
        """Record the loads of all links, and what packets queue."""
        self.records = True
        loads.watch("link", *self._servers.values())
        self._network.loads = loads

    def attach(
        self,
        node: int,
        endpoint: EndpointLike,
        capacity_bytes: int | None = None,
        left: Callable[[Packet], None] | None = None,
    ) -> None:
        """Deliver the packets that arrive at `node` to `endpoint`.

        With a capacity, a packet of a virtual network arrives only when there is room for all of
        it, or when all of the room is free; `release` gives the room back. `left(packet)` is called
        when the last flit of a packet from `node` has left its queue.
        """
        assert node not in self._endpoints, f"node {node} has an endpoint already"
        self._endpoints[node] = endpoint
        if capacity_bytes is not None:
            self._capacity_flits[node] = self._clock.flits(capacity_bytes)
        if left is not None:
            self._departures[node] = Departures(left)

    def waiting_bytes(self, node: int) -> int:
        """The bytes that `node`, attached with `left`, has sent and that have not left it yet."""
        return self._departures[node].nbytes

    @property
    def servers(self) -> list[LinkCounters | None]:
        """The counters of each link of the graph; None for a link that has carried nothing."""
        of_link: list[LinkCounters | None] = [None] * len(self._graph.links)
        for index, counters in (*self._servers.items(), *self._network.ports.items()):
            if index < len(of_link):
                of_link[index] = counters
        return of_link

    def busiest(self) -> list[LinkCounters]:
        """The links that have carried packets, the busiest first."""
        return sorted(
            (each for each in self.servers if each is not None), key=lambda each: -each.busy_ps
        )

    def latency_ps(self, source: int, target: int) -> int:
        """The time of a packet of one flit that starts at a clock edge, without contention."""
        return self._routes.latency_ps(source, target)

    def serialisation_ps(self, nbytes: int, bw_gbs: float) -> int:
        """The time for which the flits of a packet occupy a link of `bw_gbs`."""
        cycles = self._clock.flits(nbytes) * self._clock.flit_cycles(bw_gbs)
        return cycles * self._clock.period_ps

    def stalled(self) -> Iterator[StalledPacket]:
        """The packets that stand still at the end of a run, and what they wait for."""
        channels, sources = self._network.channels(), self._network.sources()
        return stalled_packets(channels, sources, self._layers.count)

    def space_of(self, packet: Packet) -> str:
        """The name of the room that a packet holds at its endpoint."""
        space = packet.space
        assert isinstance(space, VirtualNetwork), "the packet is at an endpoint with a limit"
        return network_name(space.port.name, space.index, self._layers.count)

    def send(self, packet: Packet, origin: int, tail_ps: int) -> None:
        """Send `packet` from node `origin` now; its tail is there at `tail_ps`."""
        self.depart(packet, origin, tail_ps)

    def depart(self, packet: Packet, origin: int, tail_ps: int) -> None:
        """`send` for classes in C."""
        transfer = packet.transfer
        self.sent += 1
        if self.records and packet.train is None:
            packet.train = packets.train_of(transfer)
        key = (origin, transfer.node, transfer.sip, transfer.source_sip, transfer.kind)
        path: PacketPath | None = self._path_of.get(key)
        if path is None:
            path = self._path_of[key] = self._path(transfer, origin)
        if path.departures is not None:
            path.departures.nbytes += packet.size
        # Contention only delays, so the latency without it is a bound for the promises of this SIP.
        if transfer.sip != self._sip:
            packet.entrance_ps = self.engine.now_ps + path.latency_ps
            self._note_departure(packet)
        self._enter(worms.new_worm(packet, path, self._clock.flits(packet.size), tail_ps))

    def _note_departure(self, packet: Packet) -> None:
        """Note that a packet is on its way to another SIP."""
        sender: Sender | None = self._senders.get(packet.transfer.sip)
        if sender is None:
            self._send_bounds.departed(packet.transfer.sip, packet.entrance_ps)
        else:
            sender.departed(packet.entrance_ps)

    def release(self, packet: Packet) -> None:
        """The endpoint has room again for as many bytes as `packet` has."""
        network: Any = packet.space
        packet.space = None
        # The credits take a cycle back to the router.
        cycle = self._clock.cycle(self.engine.now_ps) + 1
        network.give_back(self._clock.flits(packet.size), cycle)

    def _path(self, transfer: FabricTransfer, origin: int) -> PacketPath:
        key = self._routes.key(transfer, origin)
        path = self._paths.get(key)
        if path is None:
            plan, departures = self._routes.plan(key, self._network), self._departures.get(origin)
            injection = None
            if plan.networks:
                injection = self._network.injection(plan.networks[0])
                if key.target in self._capacity_flits:
                    last = plan.networks[len(plan.networks) - 1]
                    last.limit(self._capacity_flits[key.target])
            path = self._paths[key] = PacketPath(plan, injection, departures)
        return path

    def proceed(self, step: int, subject: Any) -> None:
        """Execute an event of a packet."""
        worm: Worm = subject
        if step == worms.EJECTED:
            self._arrived(worm)
        elif step == worms.LEFT:
            departures = worm.path.departures
            assert departures is not None, "its source is notified"
            departures.left(worm.packet)
        elif step == _BEFORE:
            self._enter(worm)
        else:
            self._leave(worm)

    def _enter(self, worm: Worm) -> None:
        """Pass the links with calendars, then wait at the source of the first clocked link."""
        path = worm.path
        if worm.hop < len(path.before):
            self._pass(worm, path.before[worm.hop], _BEFORE)
        elif path.injection is None:
            self._deliver(worm)
        else:
            worm.hop, worm.head_ps = 0, self.engine.now_ps
            worm.tail_ps = max(worm.head_ps, worm.tail_ps)
            # By these numbers the target restores the order: packets of a path may overtake each
            # other on different virtual channels.
            worm.number = path.sent
            path.sent += 1
            injection = path.injection
            injection.put(worm)

    def _pass(self, worm: Worm, stage: Stage, step: int) -> None:
        """Pass a link with a calendar; the next event is when the head is at the end of it."""
        server: FifoServer = self._servers[stage.link]
        head_ps, tail_ps = self.engine.now_ps + stage.pre_ps, worm.tail_ps + stage.pre_ps
        start_ps = server.serve(head_ps, tail_ps, worm.nbytes)
        worm.hop += 1
        worm.tail_ps = server.tail_ps + stage.post_ps
        self.later(start_ps + stage.post_ps, step, worm)

    def _arrived(self, worm: Worm) -> None:
        """A packet is complete at its target, whose interface delivers packets in order."""
        path, now_ps = worm.path, self.engine.now_ps
        worm.hop = 0
        # Memories and queues rely on the order of a source: a slot is full with its last packet.
        if self._keeps_order and worm.number != path.due:
            path.held[worm.number] = worm
            return
        path.due += 1
        worm.tail_ps = now_ps
        self._leave(worm)
        while self._keeps_order and path.due in path.held:
            worm = path.held.pop(path.due)
            path.due += 1
            worm.tail_ps = now_ps
            self._leave(worm)

    def _leave(self, worm: Worm) -> None:
        """Pass the links with calendars behind the routers."""
        if worm.hop < len(worm.path.after):
            self._pass(worm, worm.path.after[worm.hop], _BEHIND)
        else:
            self._deliver(worm)

    def _deliver(self, worm: Worm) -> None:
        path = worm.path
        if path.endpoint is None:
            path.endpoint = self._endpoints[path.target]
        self.delivered += 1
        path.endpoint.accept(worm.packet, worm.tail_ps)
