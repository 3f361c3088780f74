"""The fabric of one SIP with clocked routers, finite buffers and credits; see `router`.

It has the interface of `Fabric`. A packet is accepted by its endpoint when its last flit has
arrived, so its tail is there with it. A full buffer stops the link before it, and in the end the
source: packets wait there without a limit.

Requests and replies have virtual networks of their own, since a memory answers a request with a
reply: a reply never waits for a request. Each class has as many layers as the routes need.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes, Route, Stage
from runtime.model.sip_fabric import SipFabric
from runtime.model.virtual_layers import VirtualLayers
from sip_node.chip.fabric.clocked_network import ClockedNetwork, HopTiming
from sip_node.chip.fabric.cycle_queue import CycleQueue
from sip_node.chip.fabric.fabric import Endpoint, LinkCounters, link_server
from sip_node.chip.fabric.injection import Injection
from sip_node.chip.fabric.packet import REQUESTS, Packet
from sip_node.chip.fabric.server import Server
from sip_node.chip.fabric.stalled import StalledPacket, network_name
from sip_node.chip.fabric.virtual_channels import PacketOrder, VirtualNetwork, Worm
from sip_node.chip.send_bounds import SendBounds
from sip_node.pdes.engine import Engine

_ANYWHERE = 0


@dataclass(frozen=True, slots=True)
class _Path:
    """Links with calendars, clocked links from a source to an output that ejects, calendars."""

    before: tuple[Stage, ...]
    injection: Injection | None
    networks: tuple[VirtualNetwork, ...]
    after: tuple[Stage, ...]
    order: PacketOrder


class CreditedFabric:
    """Routers, links, routes and endpoints of one SIP."""

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
        self._engine, self._graph, self._routes = engine, graph, routes
        self._sips, self._sip, self._send_bounds = sips, sip, send_bounds
        self._timing = HopTiming(graph)
        self._clock = self._timing.clock
        self._network = ClockedNetwork(
            graph, self._timing, CycleQueue(engine, self._clock.period_ps)
        )
        self._servers = {
            link.index: link_server(graph, link, links)
            for link in graph.links
            if self._timing.has_calendar(link.index)
        }
        self._layers = layers
        self._paths: dict[tuple[int, int, int, int], _Path] = {}
        self._endpoints: dict[int, Endpoint] = {}
        self._capacity_flits: dict[int, int] = {}
        self._left: dict[int, Callable[[Packet], None]] = {}
        self._waiting_bytes: Counter[int] = Counter()
        self.sent = self.delivered = 0

    def attach(
        self,
        node: int,
        endpoint: Endpoint,
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
        return self._timing.latency_ps(self._routes.route(source, target).stages)

    def serialisation_ps(self, nbytes: int, bw_gbs: float) -> int:
        """The time for which the flits of a packet occupy a link of `bw_gbs`."""
        cycles = self._clock.flits(nbytes) * self._clock.flit_cycles(bw_gbs)
        return cycles * self._clock.period_ps

    def stalled(self) -> Iterator[StalledPacket]:
        """The packets that stand still at the end of a run, and what they wait for."""
        return self._network.stalled(self._layers.count)

    def space_of(self, packet: Packet) -> str:
        """The name of the room that a packet holds at its endpoint."""
        assert isinstance(packet.space, VirtualNetwork), "the packet is at an endpoint with a limit"
        return network_name(packet.space, self._layers.count)

    def send(self, packet: Packet, origin: int, tail_ps: int) -> None:
        """Send `packet` from node `origin` now; its tail is there at `tail_ps`."""
        self.sent += 1
        if origin in self._left:
            self._waiting_bytes[origin] += packet.size
        gateway = self._graph.io_noc
        target = packet.node
        if packet.sip != self._sip:
            target = gateway
            packet.entrance_ps = self._engine.now_ps + self.latency_ps(origin, gateway)
            self._send_bounds.departed(packet.sip, packet.entrance_ps)
        neighbour = self._neighbour(packet, origin, target)
        request = packet.kind in REQUESTS
        key = (origin, target, neighbour, request)
        path = self._paths.get(key)
        if path is None:
            path = self._paths[key] = self._path(origin, target, neighbour, request)
        self._enter(packet, path, 0, tail_ps)

    def release(self, packet: Packet) -> None:
        """The endpoint has room again for as many bytes as `packet` has."""
        network, packet.space = packet.space, None
        assert isinstance(network, VirtualNetwork)
        # The credits take a cycle back to the router.
        cycle = self._clock.cycle(self._engine.now_ps) + 1
        network.give_back(self._clock.flits(packet.size), cycle)

    def _neighbour(self, packet: Packet, origin: int, target: int) -> int:
        """The SIP that a packet comes from or goes to by the IO NoC: each has an input, an output.

        Through a switch there is one of each.
        """
        gateway = self._graph.io_noc
        if self._graph.topology.system.sips.fabric == "switch":
            return _ANYWHERE
        if target == gateway and packet.sip != self._sip:
            return self._sips.next_hop(self._sip, packet.sip)
        if origin == gateway and packet.source_sip != self._sip:
            return self._sips.path(packet.source_sip, self._sip)[-2]
        return _ANYWHERE

    def _path(self, origin: int, target: int, neighbour: int, request: bool) -> _Path:  # noqa: FBT001
        route, timing = self._routes.route(origin, target), self._timing
        stages = route.stages
        clocked = [index for index, each in enumerate(stages) if not timing.has_calendar(each.link)]
        if not clocked:
            return _Path(stages, None, (), (), PacketOrder())
        first, end = clocked[0], clocked[-1] + 1
        layers = self._layers_of(route)
        base = 0 if request else self._layers.count
        networks = [
            self._network.link(stage, base + layer)
            for stage, layer in zip(stages[first:end], layers[first:end], strict=True)
        ]
        begin, last = timing.ends(stages[first])[0], timing.ends(stages[end - 1])[1]
        if timing.is_router(begin):
            networks.insert(0, self._network.entrance(begin, neighbour, base + layers[first]))
        if timing.is_router(last):
            networks.append(self._network.exit(last, neighbour, base + layers[end - 1]))
        ejecting = networks[-1]
        ejecting.eject = self._ejected
        if target in self._capacity_flits:
            ejecting.limit(self._capacity_flits[target])
        injection = self._network.injection(networks[0])
        if origin in self._left:
            injection.arbiter.left = partial(self._has_left, origin)
        return _Path(stages[:first], injection, tuple(networks), stages[end:], PacketOrder())

    def _layers_of(self, route: Route) -> list[int]:
        """The layer of each stage: that of the hop into the node at its end."""
        ends = dict(zip(route.nodes[1:], self._layers.of(route), strict=True))
        return [ends[self._timing.ends(stage)[1]] for stage in route.stages]

    def _enter(self, packet: Packet, path: _Path, index: int, tail_ps: int) -> None:
        """Pass the links with calendars, then wait at the source of the first clocked link."""
        now_ps = self._engine.now_ps
        if index < len(path.before):
            start_ps, tail_ps = self._reserve(path.before[index], packet, tail_ps)
            self._engine.at(start_ps, self._enter, packet, path, index + 1, tail_ps)
        elif path.injection is None:
            self._deliver(packet, tail_ps)
        else:
            flits = self._clock.flits(packet.size)
            tail_ps = max(now_ps, tail_ps)
            path.injection.put(
                Worm(packet, path.networks, flits, now_ps, tail_ps, path.after, path.order)
            )

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
        network = worm.path[-1]
        if network.space is not None:
            worm.packet.space = network
        self._engine.at((cycle + 1) * self._clock.period_ps, self.arrived, worm)

    def arrived(self, worm: Worm) -> None:
        """A packet is complete at its target, whose interface delivers packets in order."""
        order = worm.order
        order.held[worm.number] = worm
        while order.due in order.held:
            worm = order.held.pop(order.due)
            order.due += 1
            self.leave(worm)

    def leave(self, worm: Worm) -> None:
        """Pass the links with calendars behind the routers."""
        self._leave(worm.packet, worm.after, 0, self._engine.now_ps)

    def _leave(self, packet: Packet, stages: tuple[Stage, ...], index: int, tail_ps: int) -> None:
        if index == len(stages):
            self._deliver(packet, tail_ps)
            return
        start_ps, tail_ps = self._reserve(stages[index], packet, tail_ps)
        self._engine.at(start_ps, self._leave, packet, stages, index + 1, tail_ps)

    def _deliver(self, packet: Packet, tail_ps: int) -> None:
        self.delivered += 1
        node = packet.node if packet.sip == self._sip else self._graph.io_noc
        self._endpoints[node].accept(packet, tail_ps)
