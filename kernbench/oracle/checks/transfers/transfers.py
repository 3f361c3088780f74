"""Batches of DMA requests on a system, and packets on a bare fabric, for groups c, d and h."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import Simulation, simulate
from runtime.core.requests import PeDmaMsg, Request
from runtime.core.simtime import NEVER_PS
from runtime.core.trace import OpRecord
from runtime.device.rank.rank_state import running_rank
from runtime.model.addresses import AddressMap
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from runtime.model.topology import parse_topology
from sip_node.chip.bounds.command_bounds import CommandBounds
from sip_node.chip.bounds.send_bounds import SendBounds
from sip_node.chip.fabric.fabric import Fabric
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.registry import components
from sip_node.pdes.engine import Engine

FLOW_BYTES = 1 << 18
TOLERANCE = 1e-3
"""Tolerance of a rate: the steady state is measured over a finite number of bytes."""


class OneSip:
    """A system of one SIP; each batch of DMA requests runs on a fresh one."""

    def __init__(self, file: TopologyFile) -> None:
        self.file = file
        self.addresses = AddressMap(parse_topology(file.text, "topology", 1))

    def read_slice(self, pe: tuple[int, int], owner: int, nbytes: int, offset: int = 0) -> PeDmaMsg:
        """PE `(cube, pe)` reads from the HBM slice of PE `owner` of its cube."""
        address = self.addresses.pe_hbm_addr(0, pe[0], owner, offset)
        return PeDmaMsg(*pe, "read", address, nbytes)

    def to_tcm(self, pe: tuple[int, int], owner: int, nbytes: int) -> PeDmaMsg:
        """PE `(cube, pe)` writes to the TCM of PE `owner` of its cube."""
        return PeDmaMsg(*pe, "write", self.addresses.pe_tcm_addr(0, pe[0], owner, 0), nbytes)

    def run(self, requests: Iterable[Request]) -> Simulation:
        """Run requests that are submitted together, until all are complete."""

        def program(_rank: int) -> None:
            device = running_rank().device
            device.wait(device.submit(list(requests), "a batch of requests"))

        return simulate(program, 1, topology=self.file.text, data=False)

    def span_ps(self, requests: Iterable[PeDmaMsg]) -> int:
        """Time from the start of the first request to the end of the last one."""
        records = dma_records(self.run(requests))
        return max(record.end_ps for record in records) - min(record.start_ps for record in records)

    def rate_gbs(self, batch: Callable[[int], list[PeDmaMsg]]) -> float:
        """Bytes per nanosecond in the steady state; `batch(n)` moves n bytes per flow.

        The difference of two runs, so that latencies cancel out.
        """
        once, twice = batch(FLOW_BYTES), batch(2 * FLOW_BYTES)
        once_bytes, twice_bytes = (sum(each.nbytes for each in batch) for batch in (once, twice))
        return (twice_bytes - once_bytes) * 1000 / (self.span_ps(twice) - self.span_ps(once))


def dma_records(world: Simulation) -> list[OpRecord]:
    """The records of all DMAs of a run."""
    return [record for _, record in world.of("pe_dma")]


@dataclass(frozen=True)
class Arrival:
    """The arrival of a packet: its number, and the times of its head and its tail."""

    tag: int
    head_ps: int
    tail_ps: int


class BareFabric:
    """The fabric of one SIP without components, with sinks at the destinations of packets."""

    def __init__(self, file: TopologyFile) -> None:
        self.engine = Engine()
        self.graph = ChipGraph(parse_topology(file.text, "topology", 1))
        self.routes = ChipRoutes(self.graph)
        links = components(self.graph.topology).links
        bounds = SendBounds({}, CommandBounds(), answers=False)
        self.fabric = Fabric(self.engine, self.graph, self.routes, 0, bounds, links)
        self.arrivals: list[Arrival] = []

    def attach_sink(self, node: int) -> None:
        """Record the packets that arrive at a node."""
        self.fabric.attach(node, self)

    def send(self, source: int, target: int, nbytes: int, tag: int) -> None:
        """Send a packet, all of whose bytes are at its source now."""
        now_ps = self.engine.now_ps
        transfer = FabricTransfer(Kind.WRITE, 0, source, 0, target, tag=tag, sent_ps=now_ps)
        self.fabric.send(Packet(transfer, 0, nbytes), source, now_ps)

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Called by the fabric when the head of a packet arrives."""
        self.arrivals.append(Arrival(packet.transfer.tag, self.engine.now_ps, tail_ps))

    def run(self) -> list[Arrival]:
        """Run until no event is left."""
        self.engine.run_before(NEVER_PS)
        return self.arrivals
