"""The fabric of one SIP: moves packets along their routes, with one event per packet and link.

Switching is virtual cut-through (Kermani & Kleinrock; Dally & Towles, chapter 13): the head of a
packet continues before its tail has arrived.

    link 1   head |=========| tail
    link 2       head |=========| tail          delay of the head: overheads and wires
    link 3           head |===================| tail      a narrow link stretches the packet

Every link is a FIFO server which the head of a packet reserves when it arrives. So a packet behind
a blocked one waits, flows that share a link share its bandwidth, and without contention a packet
takes the sum of overheads and wires plus its bytes at the narrowest link. Buffers in routers are
unlimited: there is no back-pressure, and no route can deadlock.

`ReferenceFabric` is this fabric in Python. `Fabric` moves packets by the compiled twin of `send`
where that is built.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.simtime import serialisation_ps
from runtime.model.graph import ChipGraph, Link
from runtime.model.routing import ChipRoutes, Stage
from sip_node.chip.fabric.packet import Packet, train_of
from sip_node.chip.fabric.server import Server
from sip_node.chip.fabric.stalled import StalledPacket
from sip_node.chip.link_loads import LinkLoads
from sip_node.chip.send_bounds import SendBounds
from sip_node.pdes.engine import Engine


class EndpointLike(Protocol):
    """A component at the end of routes."""

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Take a packet whose head has arrived and whose tail arrives at `tail_ps`."""
        ...


class LinkCounters(Protocol):
    """What every link counts, with a calendar or a clock."""

    @property
    def name(self) -> str:
        """`source->target`."""
        ...

    def serialisation_ps(self, nbytes: int) -> int:
        """The time that `nbytes` take."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of the packets that it has carried."""
        ...

    @property
    def busy_ps(self) -> int:
        """How long it has been busy."""
        ...

    @property
    def queued_ps(self) -> int:
        """How long the heads of packets have waited for it."""
        ...


class ReferenceFabric:
    """Links, routes and endpoints of one SIP."""

    def __init__(
        self,
        engine: Engine,
        graph: ChipGraph,
        routes: ChipRoutes,
        sip: int,
        send_bounds: SendBounds,
        links: Mapping[str, type[Server]],
    ) -> None:
        self._engine, self._routes, self._sip = engine, routes, sip
        self._send_bounds = send_bounds
        self._gateway = graph.io_noc
        self._endpoints: dict[int, EndpointLike] = {}
        self.servers = [
            None if link.bw_gbs is None else link_server(graph, link, links) for link in graph.links
        ]
        self.sent = 0
        self.delivered = 0
        self.records = False
        """Whether packets have trains, in a run with records."""

    def record(self, loads: LinkLoads) -> None:
        """Record the loads of all links, and what packets queue."""
        self.records = True
        loads.watch("link", *(server for server in self.servers if server is not None))

    def attach(
        self,
        node: int,
        endpoint: EndpointLike,
        capacity_bytes: int | None = None,  # noqa: ARG002 - what `CreditedFabric` limits
        left: Callable[[Packet], None] | None = None,  # noqa: ARG002
    ) -> None:
        """Deliver the packets that arrive at `node` to `endpoint`; there is room for all."""
        assert node not in self._endpoints, f"node {node} has an endpoint already"
        self._endpoints[node] = endpoint

    def replace(self, node: int, endpoint: EndpointLike) -> None:
        """Deliver the packets that arrive at `node` from now on to another endpoint."""
        self._endpoints[node] = endpoint

    def latency_ps(self, source: int, target: int) -> int:
        """The time of a packet's head without contention: overheads and wires."""
        return self._routes.route(source, target).latency_ps

    def serialisation_ps(self, nbytes: int, bw_gbs: float) -> int:
        """The time for which a packet occupies a link of `bw_gbs`."""
        return serialisation_ps(nbytes, bw_gbs)

    def release(self, packet: Packet) -> None:
        """The endpoint has room again for `packet`: here it always has."""

    def stalled(self) -> Iterator[StalledPacket]:
        """No packet stands still: without a limit of buffers none waits for another buffer."""
        return iter(())

    def busiest(self) -> list[Server]:
        """The links with a bandwidth, the busiest first."""
        return sorted(
            (each for each in self.servers if each is not None), key=lambda each: -each.busy_ps
        )

    def send(self, packet: Packet, origin: int, tail_ps: int) -> None:
        """Send `packet` from node `origin` now; its tail is there at `tail_ps`."""
        self.sent += 1
        if self.records and packet.train is None:
            packet.train = train_of(packet.transfer)
        sip, node = packet.transfer.sip, packet.transfer.node
        if sip == self._sip:
            self._advance(packet, node, self._routes.route(origin, node).stages, 0, tail_ps)
            return
        # To another SIP: the route ends at the IO NoC, where the UCIe ports take over. The head is
        # there after the latency of the route or later, which bounds the next message of this SIP.
        route = self._routes.route(origin, self._gateway)
        packet.entrance_ps = self._engine.now_ps + route.latency_ps
        self._send_bounds.departed(sip, packet.entrance_ps)
        self._advance(packet, self._gateway, route.stages, 0, tail_ps)

    def _advance(
        self, packet: Packet, target: int, stages: tuple[Stage, ...], index: int, tail_ps: int
    ) -> None:
        if index == len(stages):
            self.delivered += 1
            self._endpoints[target].accept(packet, tail_ps)
            return
        stage = stages[index]
        server = self.servers[stage.link]
        assert server is not None
        pre_ps, post_ps = stage.pre_ps, stage.post_ps
        # One event per hop: the delays before and after the link are merged into it (`Stage`).
        # The tail keeps its distance to the head, unless the link is slower or busy.
        head_ps = self._engine.now_ps + pre_ps
        start_ps, tail_ps = server.reserve(head_ps, tail_ps + pre_ps, packet.size)
        if packet.train is not None:
            waited_ps = packet.train.at_link(index, head_ps, start_ps, tail_ps)
            if waited_ps:
                packet.queued(waited_ps, server.name)
        self._engine.at(
            start_ps + post_ps, self._advance, packet, target, stages, index + 1, tail_ps + post_ps
        )


if TYPE_CHECKING or not IS_COMPILED:
    Fabric = ReferenceFabric
else:
    from sip_node.compiled.hops import Hops

    class Fabric(Hops, ReferenceFabric):
        """The reference, whose `send` and hops are in C."""

        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            self.bind(
                self._engine,
                self._routes.stages,
                self.servers,
                self._endpoints,
                self._sip,
                self._gateway,
                self._send_bounds,
            )


def link_server(graph: ChipGraph, link: Link, links: Mapping[str, type[Server]]) -> Server:
    """The FIFO server of a link with a bandwidth.

    Its class follows from the kind of the node that the link leaves.
    """
    assert link.bw_gbs is not None, f"link {link.index} only delays"
    kind = graph.nodes[link.source].kind
    # Nodes where packets end are no kind of `impl:` for links: no packet passes them.
    serve = links.get(kind, Server)
    return serve(graph.link_names[link.index], link.bw_gbs)
