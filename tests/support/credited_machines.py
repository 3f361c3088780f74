"""Random machines with credits and random traffic: all that an observer can see of a run.

`python -m tests.support.credited_machines FIRST COUNT` prints a line for each of COUNT machines.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

from msgspec.structs import replace

from runtime.core.errors import ConfigError
from runtime.core.simtime import NEVER_PS
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from runtime.model.sip_fabric import SipFabric
from runtime.model.topology import Topology
from runtime.model.virtual_layers import VirtualLayers
from sip_node.chip.bounds.command_bounds import CommandBounds
from sip_node.chip.bounds.send_bounds import SendBounds
from sip_node.chip.fabric.clocked.credited_fabric import CreditedFabric
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.pdes.engine import Engine
from tests.support.extreme_times import ORIGINS_PS
from tests.support.topologies import variant

ENDPOINTS = ("pe", "hbm_ctrl", "sram", "m_cpu", "host", "io_cpu", "io_noc")
KINDS = (Kind.READ, Kind.WRITE, Kind.DATA, Kind.ACK)
SIZES = (0, 16, 64, 200, 256, 1000, 4096)
PACKETS = 60
BUILDINGS = 24
"""Chips whose graph and layers differ; every machine has one of them and numbers of its own."""


@dataclass
class Observed:
    """The events that the endpoints of a machine see, in order, and its state at the end."""

    events: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])
    state: dict[str, object] = field(default_factory=dict[str, object])


@cache
def chip(seed: int) -> tuple[Topology, VirtualLayers]:
    """A chip of 1 to 4 cubes with any grid, hole and positions, in a system of 1 to 4 SIPs."""
    draw = Random(seed)

    def point() -> list[float]:
        return [float(draw.randint(0, 12)), float(draw.randint(0, 12))]

    width = draw.randint(1, 2)
    hole = sorted(point()), sorted(point())
    changes: dict[str, Any] = {
        "sip__cube_mesh": {"w": width, "h": draw.randint(1, 2)},
        "sip__io_chiplet__edge": draw.choice("NESW"),
        "system__sips__count": draw.randint(1, 4),
        "system__sips__fabric": draw.choice(["direct", "direct", "switch"]),
        "cube__noc__rows": draw.randint(1, 6),
        "cube__noc__cols": draw.randint(1, 6),
        "cube__noc__hbm_hole_mm": [hole[0][0], hole[1][0], hole[0][1], hole[1][1]],
        "cube__pe_layout__pe_per_corner": 1,
    }
    if draw.random() < 0.5:
        changes["cube__ucie_pos_mm"] = {side: point() for side in "NESW"}
        changes["cube__m_cpu__pos_mm"], changes["cube__sram__pos_mm"] = point(), point()
    try:
        topology = variant(**changes)
    except ConfigError:
        # A hole that takes all routers, or cuts the grid in two.
        changes["cube__noc__hbm_hole_mm"] = [4.0, 4.0, 4.0, 4.0]
        topology = variant(**changes)
    graph = ChipGraph(topology)
    return topology, VirtualLayers(graph, ChipRoutes(graph), SipFabric(topology))


def machine(draw: Random) -> tuple[Topology, VirtualLayers]:
    """A chip with routers and bandwidths of its own."""
    topology, layers = chip(draw.randrange(BUILDINGS))
    noc = replace(
        topology.noc,
        flow_control="credits",
        vcs=draw.randint(1, 8),
        buffer_flits=draw.randint(1, 16),
        router_stages=draw.randint(1, 4),
        flit_bytes=draw.choice([32, 64, 128, 200]),
        clock_ghz=draw.choice([0.7, 1.0, 2.0, 3.0]),
    )
    grid = replace(topology.cube.noc, link_bw_gbs=draw.choice([50.0, 128.0, 256.0]))
    return replace(topology, noc=noc, cube=replace(topology.cube, noc=grid)), layers


class CreditedMachine:
    """A fabric with an endpoint at every component."""

    def __init__(self, seed: int) -> None:
        self._draw = draw = Random(seed)
        topology, layers = machine(draw)
        self._graph = graph = ChipGraph(topology)
        sips, bounds = SipFabric(topology), SendBounds({}, CommandBounds(), answers=False)
        self.engine, self.sips = Engine(), topology.sips
        routes = ChipRoutes(graph)
        self.fabric = CreditedFabric(self.engine, graph, routes, layers, sips, 0, bounds, {})
        self.observed = Observed()
        self._nodes = [node.index for node in graph.nodes if node.kind in ENDPOINTS]
        self._limited: set[int] = set()
        self._notified = {node for node in self._nodes if draw.random() < 0.3}
        self._stall = draw.choice([0.0, 0.0, 0.1])
        for node in self._nodes:
            capacity = draw.choice([None, 256, 4096, 9000])
            if capacity is not None:
                self._limited.add(node)
            left = self._left if node in self._notified else None
            self.fabric.attach(node, _Endpoint(self, node), capacity, left)

    def run(self, packets: int) -> Observed:
        """Send `packets` packets at random times between random components; then run to the end."""
        for time_ps, packet, origin, lag_ps in self._traffic(packets):
            self.engine.at(time_ps, self._send, packet, origin, time_ps + lag_ps)
        try:
            self.engine.run_before(NEVER_PS)
        except OverflowError as error:
            self.observed.events.append(("beyond time", str(error)))
            return self.observed
        fabric = self.fabric
        self.observed.state = {
            "packets": (fabric.sent, fabric.delivered),
            "links": [
                (each.name, each.nbytes, each.busy_ps, each.queued_ps, each.serialisation_ps(999))
                for each in fabric.busiest()
            ],
            "stalled": [
                (each.buffer, each.packet.transfer.tag, each.waits_for) for each in fabric.stalled()
            ],
            "waiting": [fabric.waiting_bytes(node) for node in sorted(self._notified)],
            "engine": (self.engine.now_ps, self.engine.events),
        }
        return self.observed

    def accept(self, node: int, packet: Packet, tail_ps: int) -> None:
        """The endpoint at `node` takes a packet, and gives its room back later, or never."""
        now_ps, space = self.engine.now_ps, ""
        if packet.space is not None:
            space = self.fabric.space_of(packet)
            if self._draw.random() >= self._stall:
                later_ps = now_ps + self._draw.choice([0, 1, 700, 20_000])
                self.engine.at(later_ps, self.fabric.release, packet)
        self.observed.events.append(
            ("accept", node, packet.transfer.tag, now_ps, tail_ps, packet.entrance_ps, space)
        )

    def _left(self, packet: Packet) -> None:
        self.observed.events.append(("left", packet.transfer.tag, self.engine.now_ps))

    def _send(self, packet: Packet, origin: int, tail_ps: int) -> None:
        self.fabric.send(packet, origin, tail_ps)
        self.observed.events.append(("send", packet.transfer.tag, self.engine.now_ps))

    def _traffic(self, packets: int) -> Iterator[tuple[int, Packet, int, int]]:
        draw, gateway = self._draw, self._graph.io_noc
        origin_ps, span_ps = draw.choice(ORIGINS_PS), draw.choice([1, 20_000, 400_000])
        span_ps = min(span_ps, NEVER_PS - origin_ps)
        nodes = [node for node in self._nodes if node != gateway]
        # Few targets compete for their links; all of them have many routes.
        targets = draw.sample(nodes, draw.randint(1, len(nodes)))
        for number in range(packets):
            origin, target, source_sip, sip = draw.choice(nodes), draw.choice(targets), 0, 0
            if self.sips > 1 and draw.random() < 0.3:
                away = draw.randrange(1, self.sips)
                if draw.random() < 0.5:
                    source_sip, origin = away, gateway
                else:
                    sip = away
            if origin == target:
                continue
            transfer = FabricTransfer(
                draw.choice(KINDS), source_sip, origin, sip, target, tag=number
            )
            packet = Packet(transfer, 0, draw.choice(SIZES))
            time_ps = origin_ps + draw.randrange(span_ps)
            lag_ps = draw.choice([0, 0, 1, 5000, 77_777])
            yield time_ps, packet, origin, lag_ps


class _Endpoint:
    def __init__(self, machine: CreditedMachine, node: int) -> None:
        self._machine, self._node = machine, node

    def accept(self, packet: Packet, tail_ps: int) -> None:
        self._machine.accept(self._node, packet, tail_ps)


def main(first: int, count: int) -> None:
    """Print all that is observed of each machine."""
    for seed in range(first, first + count):
        print(seed, CreditedMachine(seed).run(PACKETS))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
