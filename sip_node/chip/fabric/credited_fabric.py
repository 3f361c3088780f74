"""The fabric of one SIP with clocked routers, finite buffers and credits; see `router`.

It has the interface of `Fabric`. A packet is accepted by its endpoint when its last flit has
arrived, so its tail is there with it. A full buffer stops the link before it, and in the end the
source: packets wait there without a limit.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from runtime.core.compiled.choice import IS_COMPILED
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes, Stage
from runtime.model.sip_fabric import SipFabric
from runtime.model.virtual_layers import VirtualLayers
from sip_node.chip.fabric.clocked_network import ClockedNetwork
from sip_node.chip.fabric.credited_paths import CreditedPaths, PathKey
from sip_node.chip.fabric.fabric import EndpointLike, LinkCounters, link_server
from sip_node.chip.fabric.packet import FabricTransfer, Packet, train_of
from sip_node.chip.fabric.router_elements import RouterElements
from sip_node.chip.fabric.server import Server
from sip_node.chip.fabric.stalled import StalledPacket, network_name, stalled_packets
from sip_node.chip.fabric.virtual_channels import VirtualNetwork
from sip_node.chip.fabric.worm import PacketPath, PathPlan, Worm
from sip_node.chip.link_loads import LinkLoads
from sip_node.chip.send_bounds import SendBounds
from sip_node.pdes.engine import Engine


class ReferenceCreditedFabric:
    """Routers, links, routes and endpoints of one SIP."""

    restores_order = True
    """Whether an endpoint gets the packets of a path in the order in which they were sent."""

    def __init__(  # noqa: PLR0917 - the parts of a chip, as for `Fabric`
        self,
        engine: Engine,
        graph: ChipGraph,
        routes: ChipRoutes,
        layers: VirtualLayers,
        sips: SipFabric,
        sip: int,
        send_bounds: SendBounds,
        links: Mapping[str, type[Server]],
    ) -> None:
        self._engine, self._graph, self._layers = engine, graph, layers
        self._sip, self._send_bounds = sip, send_bounds
        self._routes = CreditedPaths(graph, routes, layers, sips, sip)
        self._clock = self._routes.timing.clock
        self._elements = self._construct_elements()
        self._network = ClockedNetwork(graph, self._routes.timing, self._elements)
        self._servers = {
            link.index: link_server(graph, link, links)
            for link in graph.links
            if self._routes.timing.has_calendar(link.index)
        }
        self._paths: dict[PathKey, PacketPath] = {}
        self._path_of: dict[tuple[int, int, int, int, int], PacketPath] = {}
        self._endpoints: dict[int, EndpointLike] = {}
        self._capacity_flits: dict[int, int] = {}
        self._left: dict[int, Callable[[Packet], None]] = {}
        self._waiting_bytes: dict[int, int] = {}
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
            self._left[node] = left
            self._waiting_bytes[node] = 0

    def waiting_bytes(self, node: int) -> int:
        """The bytes that `node`, attached with `left`, has sent and that have not left it yet."""
        return self._waiting_bytes[node]

    @property
    def servers(self) -> list[LinkCounters | None]:
        """The counters of each link of the graph; None for a link that has carried nothing."""
        found: list[LinkCounters | None] = [None] * len(self._graph.links)
        for index, counters in (*self._servers.items(), *self._network.ports.items()):
            if index < len(found):
                found[index] = counters
        return found

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
        channels, sources = self._elements.channels(), self._elements.sources()
        return stalled_packets(channels, sources, self._layers.count)

    def space_of(self, packet: Packet) -> str:
        """The name of the room that a packet holds at its endpoint."""
        assert packet.space is not None, "the packet is at an endpoint with a limit"
        space = cast("VirtualNetwork", packet.space)
        return network_name(space.port.name, space.index, self._layers.count)

    def send(self, packet: Packet, origin: int, tail_ps: int) -> None:
        """Send `packet` from node `origin` now; its tail is there at `tail_ps`."""
        self.sent += 1
        if self.records and packet.train is None:
            packet.train = train_of(packet.transfer)
        if origin in self._left:
            self._waiting_bytes[origin] += packet.size
        transfer = packet.transfer
        key = (origin, transfer.node, transfer.sip, transfer.source_sip, transfer.kind)
        path = self._path_of.get(key)
        if path is None:
            path = self._path_of[key] = self._path(transfer, origin)
        if transfer.sip != self._sip:
            packet.entrance_ps = self._engine.now_ps + path.latency_ps
            self._send_bounds.departed(transfer.sip, packet.entrance_ps)
        self._enter(packet, path, 0, tail_ps)

    def release(self, packet: Packet) -> None:
        """The endpoint has room again for as many bytes as `packet` has."""
        network, packet.space = packet.space, None
        assert isinstance(network, VirtualNetwork)
        # The credits take a cycle back to the router.
        cycle = self._clock.cycle(self._engine.now_ps) + 1
        network.give_back(self._clock.flits(packet.size), cycle)

    def _construct_elements(self) -> RouterElements:
        return RouterElements(self._engine, self._clock)

    def _path(self, transfer: FabricTransfer, origin: int) -> PacketPath:
        key = self._routes.key(transfer, origin)
        found = self._paths.get(key)
        if found is None:
            plan = self._routes.plan(key, self._network)
            if plan.networks and key.target in self._capacity_flits:
                plan.networks[-1].limit(self._capacity_flits[key.target])
            found = self._paths[key] = self._construct_path(plan, origin)
        return found

    def _construct_path(self, plan: PathPlan, origin: int) -> PacketPath:
        injection = None
        if plan.networks:
            plan.networks[-1].eject = self._ejected
            injection = self._elements.injection(plan.networks[0])
            if origin in self._left:
                injection.arbiter.left = partial(self._has_left, origin)
        return PacketPath(plan, injection)

    def _enter(self, packet: Packet, path: PacketPath, index: int, tail_ps: int) -> None:
        """Pass the links with calendars, then wait at the source of the first clocked link."""
        now_ps = self._engine.now_ps
        if index < len(path.before):
            start_ps, tail_ps = self._reserve(path.before[index], packet, tail_ps)
            self._engine.at(start_ps, self._enter, packet, path, index + 1, tail_ps)
        elif path.injection is None:
            self._deliver(packet, path, tail_ps)
        else:
            flits = self._clock.flits(packet.size)
            path.injection.put(Worm(packet, path, flits, now_ps, max(now_ps, tail_ps)))

    def _reserve(self, stage: Stage, packet: Packet, tail_ps: int) -> tuple[int, int]:
        """(arrival of the head at the next link, of the tail) over a link with a calendar."""
        start_ps, tail_ps = self._servers[stage.link].reserve(
            self._engine.now_ps + stage.pre_ps, tail_ps + stage.pre_ps, packet.size
        )
        return start_ps + stage.post_ps, tail_ps + stage.post_ps

    def _has_left(self, origin: int, worm: Worm, now: int) -> None:
        """The last flit of a packet is on its first link at the end of cycle `now`."""
        self._waiting_bytes[origin] -= worm.packet.size
        self._engine.at((now + 1) * self._clock.period_ps, self._left[origin], worm.packet)

    def _ejected(self, worm: Worm, cycle: int) -> None:
        """The last flit of a packet is at its endpoint in `cycle`, complete at the end of it."""
        network = worm.networks[-1]
        if network.space is not None:
            worm.packet.space = network
        self._engine.at((cycle + 1) * self._clock.period_ps, self._arrived, worm)

    def _arrived(self, worm: Worm) -> None:
        """A packet is complete at its target, whose interface delivers packets in order."""
        path = worm.path
        if not self.restores_order:
            self._leave(worm.packet, path, 0, self._engine.now_ps)
            return
        path.held[worm.number] = worm
        while path.due in path.held:
            packet = path.held.pop(path.due).packet
            path.due += 1
            self._leave(packet, path, 0, self._engine.now_ps)

    def _leave(self, packet: Packet, path: PacketPath, index: int, tail_ps: int) -> None:
        """Pass the links with calendars behind the routers."""
        if index == len(path.after):
            self._deliver(packet, path, tail_ps)
            return
        start_ps, tail_ps = self._reserve(path.after[index], packet, tail_ps)
        self._engine.at(start_ps, self._leave, packet, path, index + 1, tail_ps)

    def _deliver(self, packet: Packet, path: PacketPath, tail_ps: int) -> None:
        self.delivered += 1
        self._endpoints[path.target].accept(packet, tail_ps)


if TYPE_CHECKING or not IS_COMPILED:
    CreditedFabric = ReferenceCreditedFabric
else:
    from sip_node.chip.fabric.router_elements import CompiledElements
    from sip_node.compiled.credited_hops import CreditedHops
    from sip_node.compiled.credited_hops import PacketPath as CompiledPath

    class CreditedFabric(CreditedHops, ReferenceCreditedFabric):
        """The reference, whose routers and packets on their way are in C."""

        def __init__(self, *args: Any) -> None:
            ReferenceCreditedFabric.__init__(self, *args)
            self.serve(
                self._sip,
                self._path,
                self._endpoints,
                self._servers,
                self._left,
                self._waiting_bytes,
                self._send_bounds,
                self.restores_order,
            )

        def _construct_elements(self) -> RouterElements:
            self.bind(self._engine, self._clock)
            return CompiledElements(self)

        def _construct_path(self, plan: PathPlan, origin: int) -> PacketPath:
            source = self._elements.injection(plan.networks[0]) if plan.networks else None
            return CompiledPath(plan, source, origin if origin in self._left else -1)
