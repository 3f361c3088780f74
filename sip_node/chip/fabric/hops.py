"""The traversal of routes by packets: one event per packet and link."""

from typing import TYPE_CHECKING

from sip_node.chip.fabric.approach import Approach, Lookout
from sip_node.chip.fabric.packet import EndpointLike, Packet, train_of
from sip_node.chip.fabric.server import FifoServer

if TYPE_CHECKING:
    from runtime.model.routing import ChipRoutes, Route, Stage
    from sip_node.chip.bounds.send_bounds import SendBounds
    from sip_node.chip.fabric.server import Server
    from sip_node.pdes.engine import Engine


class Hops:
    """The base of a fabric: packets from `send` to the `accept` of an endpoint.

    `records` is whether packets have trains, in a run with records.
    """

    sent: int
    delivered: int
    records: bool
    lookout: Lookout

    def bind(  # noqa: PLR0917 - what a fabric consists of
        self,
        engine: "Engine",
        routes: "ChipRoutes",
        servers: "list[Server | None]",
        endpoints: "dict[int, EndpointLike]",
        sip: int,
        gateway: int,
        send_bounds: "SendBounds",
    ) -> None:
        """Take the links by index and the endpoints by node; other SIPs are behind a gateway."""
        self.sent = self.delivered = 0
        self.records = False
        self.lookout = Lookout()
        self._engine, self._routes = engine, routes
        self._servers, self._ends = servers, endpoints
        self._own_sip, self._gateway = sip, gateway
        self._bounds = send_bounds
        self._approaches: dict[int, Approach | None] = {}

    def send(self, packet: Packet, origin: int, tail_ps: int) -> None:
        """Send `packet` from node `origin` now; its tail is there at `tail_ps`."""
        self.sent += 1
        if self.records and packet.train is None:
            packet.train = train_of(packet.transfer)
        sip, node = packet.transfer.sip, packet.transfer.node
        if sip == self._own_sip:
            stages = self._routes.route(origin, node).stages
            self._advance(packet, node, stages, 0, tail_ps)
            return
        # To another SIP: the route ends at the IO NoC, where the UCIe ports take over. The head is
        # there after the latency of the route or later, which bounds the next message of this SIP.
        route = self._routes.route(origin, self._gateway)
        packet.entrance_ps = self._engine.now_ps + route.latency_ps
        approach, egress_to = self.approach(origin), self.lookout.egress_to
        if approach is not None and egress_to is not None and egress_to[sip] is not None:
            # The queue of the last link gives a later bound than the latency of the route.
            approach.depart(packet)
        else:
            self._bounds.departed(sip, packet.entrance_ps)
        self._advance(packet, self._gateway, route.stages, 0, tail_ps)

    def approach(self, node: int) -> Approach | None:
        """The approach of packets from a node to the UCIe ports; None where nothing is foreseen."""
        if node not in self._approaches:
            route = self._routes.route(node, self._gateway)
            self._approaches[node] = self._approach_of(route)
        return self._approaches[node]

    def _approach_of(self, route: "Route") -> Approach | None:
        if not route.stages or self.lookout.egress_to is None:
            return None
        last = route.stages[-1]
        server = self._servers[last.link]
        if not isinstance(server, FifoServer) or server.is_replaced:
            return None
        return self.lookout.approach(last.link, server, last.pre_ps, last.post_ps)

    def _advance(
        self, packet: Packet, target: int, stages: "tuple[Stage, ...]", index: int, tail_ps: int
    ) -> None:
        if index == len(stages):
            self.delivered += 1
            self._ends[target].accept(packet, tail_ps)
            return
        stage = stages[index]
        server = self._servers[stage.link]
        assert server is not None
        pre_ps, post_ps = stage.pre_ps, stage.post_ps
        # One event per hop: the delays before and after the link are merged into it (`Stage`).
        # The tail keeps its distance to the head, unless the link is slower or busy.
        head_ps = self._engine.now_ps + pre_ps
        start_ps = server.serve(head_ps, tail_ps + pre_ps, packet.size)
        tail_ps, index = server.tail_ps, index + 1
        if packet.train is not None:
            waited_ps = packet.train.at_link(index - 1, head_ps, start_ps, tail_ps)
            if waited_ps:
                packet.queued(waited_ps, server.name)
        head_ps, tail_ps = start_ps + post_ps, tail_ps + post_ps
        if packet.approach is not None and index == len(stages):
            packet.approach.reserve(packet, head_ps, tail_ps)
        self._engine.at(head_ps, self._advance, packet, target, stages, index, tail_ps)
