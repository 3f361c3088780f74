"""A mesh of FIFO links with unlimited buffers which serve the flits of different packets in turn.

Only for comparison with output-queued routers: in the model of the chip a packet occupies a link as
a whole (`unlimited`), or flits wait for credits (`credits`). In a router the head of a packet takes
one cycle more than its other flits, for the allocation of a virtual channel: flits that have fallen
behind catch up.
"""

from typing import Protocol

from runtime.model.routing import ChipRoutes, Stage
from sip_node.chip.fabric.packet import Packet
from sip_node.pdes.engine import Engine

_HEAD_CYCLES = 1


class FlitSink(Protocol):
    """A destination of packets."""

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Take a packet whose last flit is complete at `tail_ps`."""
        ...


class _TravellingPacket:
    """A packet, the links of its route, and when its last flit so far enters each of them."""

    def __init__(self, packet: Packet, stages: tuple[Stage, ...], flits: int) -> None:
        self.packet, self.stages, self.flits = packet, stages, flits
        self.entered_ps = [0] * (len(stages) + 1)


class FlitMesh:
    """Links which take one flit in a cycle, in the order of arrival."""

    def __init__(self, engine: Engine, routes: ChipRoutes, cycle_ps: int, flit_bytes: int) -> None:
        self._engine, self._routes = engine, routes
        self._cycle_ps, self._flit_bytes = cycle_ps, flit_bytes
        self._sinks: dict[int, FlitSink] = {}
        self._free_ps: dict[int, int] = {}
        self.flit_hops = 0

    def attach(self, node: int, sink: FlitSink) -> None:
        """Deliver the packets that arrive at `node` to `sink`."""
        self._sinks[node] = sink

    def send(self, packet: Packet, origin: int, tail_ps: int) -> None:
        """Send `packet`, all of whose bytes are at node `origin`, now."""
        assert tail_ps == self._engine.now_ps, "a packet is complete when it is sent"
        flits = packet.size // self._flit_bytes
        stages = self._routes.route(origin, packet.transfer.node).stages
        travelling = _TravellingPacket(packet, stages, flits)
        for flit in range(flits):
            self._enter(travelling, 0, flit)

    def _enter(self, travelling: _TravellingPacket, hop: int, flit: int) -> None:
        """A flit is at its next link."""
        engine, packet = self._engine, travelling.packet
        if hop == len(travelling.stages):
            if flit == travelling.flits - 1:
                self._sinks[packet.transfer.node].accept(packet, engine.now_ps + self._cycle_ps)
            return
        stage = travelling.stages[hop]
        self.flit_hops += 1
        start_ps = max(engine.now_ps, self._free_ps.get(stage.link, 0))
        self._free_ps[stage.link] = start_ps + self._cycle_ps
        at_ps = start_ps + stage.post_ps
        # The last link leads to the PE, which allocates nothing.
        if flit and hop + 1 < len(travelling.stages):
            at_ps -= _HEAD_CYCLES * self._cycle_ps
        if flit:
            at_ps = max(at_ps, travelling.entered_ps[hop + 1] + self._cycle_ps)
        travelling.entered_ps[hop + 1] = at_ps
        engine.at(at_ps, self._enter, travelling, hop + 1, flit)
