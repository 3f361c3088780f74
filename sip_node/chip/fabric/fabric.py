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
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from runtime.core.simtime import serialisation_ps
from runtime.model.graph import ChipGraph, Link
from runtime.model.routing import ChipRoutes
from sip_node.chip.fabric.hops import Hops
from sip_node.chip.fabric.packet import EndpointLike, Packet
from sip_node.chip.fabric.server import Server
from sip_node.chip.records.link_loads import LinkLoads
from sip_node.pdes.engine import Engine

if TYPE_CHECKING:
    from sip_node.chip.bounds.send_bounds import SendBounds
    from sip_node.chip.fabric.clocked.stalled import StalledPacket


class Fabric(Hops):
    """Links, routes and endpoints of one SIP."""

    def __init__(
        self,
        engine: Engine,
        graph: ChipGraph,
        routes: ChipRoutes,
        sip: int,
        send_bounds: "SendBounds",
        links: Mapping[str, type[Server]],
    ) -> None:
        self._routes = routes
        self._endpoints: dict[int, EndpointLike] = {}
        self.servers = [
            None if link.bw_gbs is None else link_server(graph, link, links) for link in graph.links
        ]
        self.bind(engine, routes, self.servers, self._endpoints, sip, graph.io_noc, send_bounds)

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

    def stalled(self) -> Iterator["StalledPacket"]:
        """No packet stands still: without a limit of buffers none waits for another buffer."""
        return iter(())

    def busiest(self) -> list[Server]:
        """The links with a bandwidth, the busiest first."""
        return sorted(
            (each for each in self.servers if each is not None), key=lambda each: -each.busy_ps
        )


def link_server(graph: ChipGraph, link: Link, links: Mapping[str, type[Server]]) -> Server:
    """The FIFO server of a link with a bandwidth.

    Its class follows from the kind of the node that the link leaves.
    """
    assert link.bw_gbs is not None, f"link {link.index} only delays"
    # A component and its outputs are one block of hardware, so `impl:` replaces them together.
    kind = graph.nodes[link.source].kind
    # Nodes where packets end are no kind of `impl:` for links: no packet passes them.
    serve = links.get(kind, Server)
    return serve(graph.link_names[link.index], link.bw_gbs)
