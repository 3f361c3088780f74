"""Batches of DMA requests on a whole system, and packets on a bare fabric: what groups c, d and h measure with."""

from collections.abc import Iterable
from dataclasses import dataclass

from kernbench.theory.topology_file import TopologyFile
from runtime.core.requests import PeDmaMsg
from runtime.core.simtime import NEVER_PS
from runtime.core.trace import OpRecord
from runtime.model.addresses import AddressMap
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from runtime.model.topology import parse_topology
from runtime.torch.rank_state import running_rank
from sip_node.chip.fabric.fabric import Fabric
from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.chip.registry import components
from sip_node.chip.send_bounds import SendBounds
from sip_node.local_run import World, simulate
from sip_node.pdes.engine import Engine


class OneSip:
    """A system of one SIP that runs batches of DMA requests, each batch on a fresh one."""

    def __init__(self, file: TopologyFile) -> None:
        self.file = file
        self.addresses = AddressMap(parse_topology(file.text, "topology", 1))

    def read_slice(
        self, place: tuple[int, int], owner: int, nbytes: int, offset: int = 0
    ) -> PeDmaMsg:
        """PE `(cube, pe)` reads from the slice of PE `owner` of its cube."""
        return PeDmaMsg(
            *place, "read", self.addresses.pe_hbm_addr(0, place[0], owner, offset), nbytes
        )

    def to_tcm(self, place: tuple[int, int], owner: int, nbytes: int) -> PeDmaMsg:
        """PE `(cube, pe)` writes to the TCM of PE `owner` of its cube."""
        return PeDmaMsg(*place, "write", self.addresses.pe_tcm_addr(0, place[0], owner, 0), nbytes)

    def run(self, requests: Iterable[PeDmaMsg]) -> World:
        """Run them together, to the end."""

        def program(_rank: int) -> None:
            device = running_rank().device
            device.wait(device.submit(list(requests), "a batch of DMA requests"))

        return simulate(program, 1, topology=self.file.text, data=False)

    def span_ps(self, requests: Iterable[PeDmaMsg]) -> int:
        """From the start of the first request to the end of the last one."""
        records = dma_records(self.run(requests))
        return max(record.end_ps for record in records) - min(record.start_ps for record in records)


def dma_records(world: World) -> list[OpRecord]:
    """What the DMAs of a run did."""
    return [record for _, record in world.of("pe_dma")]


@dataclass(frozen=True)
class Arrival:
    """A packet at its end: its number, and when its head and its tail were there."""

    tag: int
    head_ps: int
    tail_ps: int


class BareFabric:
    """The fabric of one SIP without components: sinks where packets end."""

    def __init__(self, file: TopologyFile) -> None:
        self.engine = Engine()
        self.graph = ChipGraph(parse_topology(file.text, "topology", 1))
        self.routes = ChipRoutes(self.graph)
        links = components(self.graph.topology).links
        self.fabric = Fabric(
            self.engine, self.graph, self.routes, 0, SendBounds({}, 0, answers=False), links
        )
        self.arrivals: list[Arrival] = []

    def attach_sink(self, node: int) -> None:
        """Note what arrives at a node."""
        self.fabric.attach(node, self)

    def send(self, source: int, target: int, nbytes: int, tag: int) -> None:
        """A packet whose bytes are all at its source now."""
        now_ps = self.engine.now_ps
        self.fabric.send(
            Packet(Kind.WRITE, 0, source, 0, target, nbytes, tag=tag, sent_ps=now_ps),
            source,
            now_ps,
        )

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """A packet has arrived."""
        self.arrivals.append(Arrival(packet.tag, self.engine.now_ps, tail_ps))

    def run(self) -> list[Arrival]:
        """Run to the end."""
        self.engine.run_before(NEVER_PS)
        return self.arrivals
