"""The routers of a cube as a network of its own: 4x4 nodes, one PE each, synthetic traffic.

The network is that of the simulator: graph, routes and fabric of a topology with one cube. Its
router grid has no hole, and its numbers give the unclocked model a clock: one flit takes one cycle
on every link. A packet of F flits with H routers on its route takes

    PE to router      1
    routers           2 H
    wires between     H - 1
    router to PE      1
    serialisation     F          sum: 3 H + 1 + F cycles

For one flit this is 3 H + 2, the zero-load latency of the reference router. The wire from a PE to
its router is as long as that between two routers. So the PE is between four routers; it is attached
to the nearest one, with ties to the lowest row, then column.

With credits, a router of s stages takes (s + 1) H + 1 + F cycles: each of its links has one more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import log

from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.rng import Random, seeded
from runtime.core.simtime import NEVER_PS
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes, Route, Stage
from runtime.model.sip_fabric import SipFabric
from runtime.model.topology import parse_topology
from runtime.model.virtual_layers import VirtualLayers
from sip_node.chip.bounds.command_bounds import CommandBounds
from sip_node.chip.bounds.send_bounds import SendBounds
from sip_node.chip.fabric.clocked.credited_fabric import CreditedFabric
from sip_node.chip.fabric.fabric import Fabric
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.registry import components
from sip_node.pdes.engine import Engine
from tests.fidelity.mesh.flit_mesh import FlitMesh

SIDE = 4
NODES = SIDE * SIDE
CYCLE_NS = 1.0
CYCLE_PS = 1000
FLIT_BYTES = 64
FLIT_GBS = FLIT_BYTES / CYCLE_NS
ALONE_PS = 1000 * CYCLE_PS
PATTERNS = ("uniform", "transpose", "bitcomp", "neighbor", "hotspot")
FLOW_CONTROLS = ("unlimited", "flits", "credits")
HOTSPOT, HOTSPOT_SHARE = 5, 0.1
"""A node in the middle, and the share of packets with `hotspot` that are for it."""
STABLE = 0.975
"""The network is stable if it accepts at least this share of the flits that are generated."""


@dataclass(frozen=True)
class MeshRouter:
    """The routers, by flow control.

    With `unlimited` a packet occupies a link as a whole; with `flits` (`FlitMesh`) the flits of
    different packets interleave. The other values belong to `credits`.
    """

    flow_control: str = "unlimited"
    stages: int = 4
    vcs: int = 4
    buffer_flits: int = 8


UNLIMITED = MeshRouter()


@dataclass(frozen=True)
class Traffic:
    """The traffic that each node offers: `load` flits per cycle in packets of `flits`.

    A packet is generated in a cycle with a fixed probability (Bernoulli process).
    """

    pattern: str
    load: float
    flits: int
    seed: int


@dataclass(frozen=True)
class MeshStatistics:
    """Statistics of the `packets` packets that were generated in the measured cycles.

    The latency is from the generation to the ejection of the tail. `accepted` is the number of
    flits ejected per node and cycle during the measurement, `generated` that of those generated.
    """

    packets: int
    latency_cycles: float
    accepted: float
    generated: float

    @property
    def stable(self) -> bool:
        """Whether the network is below its saturation."""
        return self.accepted >= STABLE * self.generated


def mesh_file(file: TopologyFile, router: MeshRouter = UNLIMITED) -> TopologyFile:
    """The user's file with one cube of 4x4 routers and PEs, and with times in whole cycles."""
    positions = [[col + 1.0, row + 1.0] for row in range(SIDE) for col in range(SIDE)]
    ports = {"N": [0.0, 0.0], "S": [0.0, SIDE], "W": [0.0, 0.0], "E": [SIDE, 0.0]}
    return file.with_values(
        {
            "ns_per_mm": CYCLE_NS,
            "noc": {
                "flow_control": "credits" if router.flow_control == "credits" else "unlimited",
                "vcs": router.vcs,
                "buffer_flits": router.buffer_flits,
                "router_stages": router.stages,
                "flit_bytes": FLIT_BYTES,
                "clock_ghz": 1 / CYCLE_NS,
            },
            "sip.cube_mesh": {"w": 1, "h": 1},
            "cube.size_mm": {"w": float(SIDE), "h": float(SIDE)},
            "cube.noc": {
                "rows": SIDE,
                "cols": SIDE,
                "hbm_hole_mm": [0.0, 0.0, 0.0, 0.0],
                "router_overhead_ns": 2 * CYCLE_NS,
                "link_bw_gbs": FLIT_GBS,
            },
            "cube.pe_layout": {
                "pe_per_corner": NODES,
                "corners": ["NW"],
                "pos_mm": {"NW": positions},
            },
            "cube.ucie_pos_mm": {
                side: list(map(float, position)) for side, position in ports.items()
            },
            "cube.m_cpu.pos_mm": [0.0, 0.0],
            "cube.sram.pos_mm": [0.0, 0.0],
            "pe.to_router_bw_gbs": FLIT_GBS,
            "hbm.slice_gib": 1,
        }
    )


class MeshNetwork:
    """The network with a source and a sink at every PE."""

    def __init__(self, file: TopologyFile, router: MeshRouter = UNLIMITED) -> None:
        self.engine = Engine()
        topology = parse_topology(mesh_file(file, router).text, "topology", 1)
        graph = ChipGraph(topology)
        routes = _MeshRoutes(graph)
        links = components(topology).links
        bounds = SendBounds({}, CommandBounds(), answers=False)
        self.fabric: Fabric | CreditedFabric | FlitMesh
        if router.flow_control == "flits":
            self.fabric = FlitMesh(self.engine, routes, CYCLE_PS, FLIT_BYTES)
        elif router.flow_control == "credits":
            sips = SipFabric(topology)
            layers = VirtualLayers(graph, routes, sips)
            self.fabric = _MeshFabric(self.engine, graph, routes, layers, sips, 0, bounds, links)
        else:
            self.fabric = Fabric(self.engine, graph, routes, 0, bounds, links)
        self.pes = [graph.pe(0, node) for node in range(NODES)]
        routers = [routes.route(pe, graph.sram(0)).nodes[1] for pe in self.pes]
        assert len(set(routers)) == NODES, "each PE has its own router"

    def one_by_one(self, flits: int) -> Iterator[tuple[int, int, float]]:
        """(source, target, latency in cycles) of one packet between each pair of nodes.

        A packet is sent long after the packet before it.
        """
        sink = _MeshSink(self.engine, 0, NEVER_PS)
        self._attach(sink)
        for number, (source, target) in enumerate(product(range(NODES), range(NODES))):
            before_ps = sink.latency_ps
            self.engine.at(number * ALONE_PS, self.send, source, target, flits * FLIT_BYTES)
            self.engine.run_before(NEVER_PS)
            yield source, target, (sink.latency_ps - before_ps) / CYCLE_PS

    def send(self, source: int, target: int, nbytes: int) -> None:
        """Send a packet now; a packet to its own node turns round at the router."""
        pe, now_ps = self.pes[source], self.engine.now_ps
        transfer = FabricTransfer(Kind.WRITE, 0, pe, 0, self.pes[target], sent_ps=now_ps)
        self.fabric.send(Packet(transfer, 0, nbytes), pe, now_ps)

    def run(
        self, traffic: Traffic, cycles: int, warmup: int, *, drains: bool = True
    ) -> MeshStatistics:
        """Offer traffic for `warmup` cycles, then measure for `cycles` cycles.

        The sources continue until all packets generated in the measured cycles have arrived, so
        that the last ones compete with as much traffic as the first ones; but unless it `drains`,
        the run ends with the measurement, and late packets count in `accepted` only.
        """
        sink = _MeshSink(self.engine, warmup * CYCLE_PS, (warmup + cycles) * CYCLE_PS)
        self._attach(sink)
        for node in range(NODES):
            _MeshSource(self, sink, node, traffic).start()
        self.engine.run_before(NEVER_PS if drains else (warmup + cycles) * CYCLE_PS)
        return MeshStatistics(
            packets=sink.packets,
            latency_cycles=sink.latency_ps / CYCLE_PS / sink.packets,
            accepted=sink.accepted / (NODES * cycles),
            generated=sink.measured * traffic.flits / (NODES * cycles),
        )

    @property
    def flit_hops(self) -> int:
        """Flits carried, over all links."""
        if isinstance(self.fabric, FlitMesh):
            return self.fabric.flit_hops
        return sum(link.nbytes for link in self.fabric.busiest()) // FLIT_BYTES

    def _attach(self, sink: "_MeshSink") -> None:
        for pe in self.pes:
            self.fabric.attach(pe, sink)


class _MeshFabric(CreditedFabric):
    """Delivers packets as they arrive: the reference does not restore their order."""

    restores_order = False


class _MeshRoutes(ChipRoutes):
    """A route from a PE to itself passes its router, as in the reference: H = 1."""

    def __init__(self, graph: ChipGraph) -> None:
        super().__init__(graph)
        self._sram = graph.sram(0)

    def route(self, source: int, target: int) -> Route:
        if source != target:
            return super().route(source, target)
        router = super().route(source, self._sram).nodes[1]
        there, back = super().route(source, router), super().route(router, source)
        return Route((source, router, target), there.stages + back.stages, source, target)

    def stages(self, source: int, target: int) -> tuple[Stage, ...]:
        return self.route(source, target).stages


class _MeshSink:
    """Counts arriving packets; measures those generated from `begin_ps` to before `end_ps`."""

    def __init__(self, engine: Engine, begin_ps: int, end_ps: int) -> None:
        self._engine, self._begin_ps, self._end_ps = engine, begin_ps, end_ps
        self.packets = self.latency_ps = self.accepted = self.measured = self._missing = 0

    def generated(self) -> bool:
        """Count a packet that is generated now; returns whether its source continues."""
        now_ps = self._engine.now_ps
        if now_ps < self._end_ps:
            measured = now_ps >= self._begin_ps
            self.measured += measured
            self._missing += measured
            return True
        # An overloaded network never delivers all measured packets: give up after the time of
        # another measurement, which a network below saturation does not need.
        return self._missing > 0 and now_ps < 2 * self._end_ps - self._begin_ps

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Called by the fabric: the tail of `packet` is ejected at `tail_ps`."""
        if self._begin_ps <= tail_ps < self._end_ps:
            self.accepted += packet.size // FLIT_BYTES
        if self._begin_ps <= packet.transfer.sent_ps < self._end_ps:
            self._missing -= 1
            self.packets += 1
            self.latency_ps += tail_ps - packet.transfer.sent_ps


class _MeshSource:
    """The source of one node: generates a packet in a cycle with probability load / flits."""

    def __init__(self, network: MeshNetwork, sink: _MeshSink, node: int, traffic: Traffic) -> None:
        self._network, self._sink, self._node, self._traffic = network, sink, node, traffic
        self._rng = seeded(traffic.seed, node)
        self._size = traffic.flits * FLIT_BYTES
        self._rate = traffic.load / traffic.flits
        self._cycle = -1

    def start(self) -> None:
        """Schedule the first packet."""
        self._next()

    def _next(self) -> None:
        self._cycle += gap(self._rng, self._rate)
        self._network.engine.at(self._cycle * CYCLE_PS, self._generate)

    def _generate(self) -> None:
        if not self._sink.generated():
            return
        self._network.send(
            self._node, destination(self._traffic.pattern, self._node, self._rng), self._size
        )
        self._next()


def gap(rng: Random, rate: float) -> int:
    """Cycles from one success of a Bernoulli process to the next: geometrically distributed."""
    if rate >= 1:
        return 1
    return 1 + int(log(1 - rng.random()) / log(1 - rate))


def destination(pattern: str, source: int, rng: Random) -> int:
    """The destination of a packet, as in BookSim; nodes are numbered row by row.

    `neighbor` is one node further in each dimension. `hotspot` is uniform but for a share of the
    packets which go to one node.
    """
    col, row = source % SIDE, source // SIDE
    if pattern == "uniform":
        return rng.randrange(NODES)
    if pattern == "hotspot":
        return HOTSPOT if rng.random() < HOTSPOT_SHARE else rng.randrange(NODES)
    if pattern == "transpose":
        return col * SIDE + row
    if pattern == "bitcomp":
        return NODES - 1 - source
    return (row + 1) % SIDE * SIDE + (col + 1) % SIDE
