"""Whole routes through routers with credits: a packet alone, and the rate of a virtual channel."""

from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.paths.clocked_routers import ClockedRoutes
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.paths.routes import Route
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.simtime import NEVER_PS
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from runtime.model.sip_fabric import SipFabric
from runtime.model.topology import parse_topology
from runtime.model.virtual_layers import VirtualLayers
from sip_node.chip.bounds.command_bounds import CommandBounds
from sip_node.chip.bounds.send_bounds import SendBounds
from sip_node.chip.fabric.clocked.credited_fabric import CreditedFabric
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.registry import components
from sip_node.pdes.engine import Engine

CLOCKS: dict[str, dict[str, float]] = {
    "shipped": {},
    "slow": {"noc.clock_ghz": 1.5, "noc.router_stages": 3, "noc.flit_bytes": 64},
}
"""Values of `noc` for the closed form of a packet alone."""
FEW: dict[str, float] = {"noc.buffer_flits": 2, "noc.vcs": 1}
"""Buffers that limit the rate of a virtual channel."""
FLITS = 60


class _CreditedSip:
    """The fabric of a SIP with credits, with a sink at the target."""

    def __init__(self, file: TopologyFile) -> None:
        topology = parse_topology(file.text, "topology", 1)
        self.graph = ChipGraph(topology)
        self.engine, self._arrived_ps = Engine(), 0
        routes, sips = ChipRoutes(self.graph), SipFabric(topology)
        self._fabric = CreditedFabric(
            self.engine,
            self.graph,
            routes,
            VirtualLayers(self.graph, routes, sips),
            sips,
            0,
            SendBounds({}, CommandBounds(), answers=False),
            components(topology).links,
        )

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Called by the fabric when the last flit of `packet` has arrived."""
        assert packet.size > 0, "a packet has bytes"
        self._arrived_ps = tail_ps

    def alone_ps(self, source: int, target: int, nbytes: int) -> int:
        """The time of a packet."""
        self._fabric.attach(target, self)
        packet = Packet(FabricTransfer(Kind.WRITE, 0, source, 0, target), 0, nbytes)
        self.engine.at(0, self._fabric.send, packet, source, 0)
        self.engine.run_before(NEVER_PS)
        return self._arrived_ps


def credited_routes(file: TopologyFile) -> list[Check]:
    """A packet alone on a short and a long route, in cycles."""
    checks: list[Check] = []
    for name, values in CLOCKS.items():
        changed = _with_credits(file, values)
        clocked = ClockedRoutes(changed)
        checks += [
            Check(
                id=f"e.route.{name}.{number}.{flits}",
                text=f"noc {name}, route {number}, a packet of {flits} flits alone",
                formula="stages, wires, flits at the slowest link",
                expected=clocked.alone_cycles(route, flits) * clocked.period_ps / 1000,
                measured=_alone_ps(changed, number, flits) / 1000,
                unit="ns",
            )
            for number, route in enumerate(_routes(changed))
            for flits in (1, FLITS)
        ]
    return checks


def credit_loops(file: TopologyFile) -> list[Check]:
    """The rate of a long packet which waits for credits at each link."""
    changed = _with_credits(file, FEW)
    clocked = ClockedRoutes(changed)
    return [
        Check(
            id=f"e.loop.{number}",
            text=f"route {number}, 1 VC, 2 flits: time of {FLITS} more flits of a packet",
            formula="flits x round trip of a credit / buffer",
            expected=float(FLITS * clocked.cycles_per_flit(route)) * clocked.period_ps / 1000,
            measured=(_alone_ps(changed, number, 2 * FLITS) - _alone_ps(changed, number, FLITS))
            / 1000,
            unit="ns",
        )
        for number, route in enumerate(_routes(changed))
    ]


def _with_credits(file: TopologyFile, values: dict[str, float]) -> TopologyFile:
    return file.with_values({"noc.flow_control": "credits", **values})


def _ends(file: TopologyFile) -> tuple[tuple[int, int], tuple[int, int]]:
    """The first and the last PE of a SIP, as (cube, PE)."""
    return (0, 0), (file.cubes - 1, file.pes_per_cube - 1)


def _routes(file: TopologyFile) -> list[Route]:
    """Routes to the own slice, across the cube, and across the SIP."""
    plan = FloorPlan(file)
    first, last = _ends(file)
    return [
        plan.own_slice()[0],
        plan.between_pes(first, (0, last[1])),
        plan.between_pes(first, last),
    ]


def _alone_ps(file: TopologyFile, number: int, flits: int) -> int:
    sip = _CreditedSip(file)
    first, last = _ends(file)
    source = sip.graph.pe(*first)
    target = (sip.graph.hbm(*first), sip.graph.pe(0, last[1]), sip.graph.pe(*last))[number]
    return sip.alone_ps(source, target, flits * file["noc.flit_bytes"])
