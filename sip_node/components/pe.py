"""One processing element: its engines, and its port on the fabric."""

from collections.abc import Callable
from typing import Any

from runtime.errors import InvariantError
from runtime.places import Place
from runtime.registry import look_up
from runtime.wire.messages import BlockedPe
from sip_node.components.commands import PeCommand
from sip_node.components.memory_port import MemoryPort
from sip_node.components.packet import Kind, Packet
from sip_node.components.pe_cpu import PeCpu
from sip_node.components.pe_dma import PeDma
from sip_node.components.pe_ipcq import PeIpcq
from sip_node.components.pe_math import PeFetchStore, PeMath
from sip_node.components.pe_mmu import PeMmu
from sip_node.components.server import Server
from sip_node.components.surroundings import Surroundings
from sip_node.components.wiring import PeWiring
from sip_node.memory import Memory

ENGINES: dict[str, Callable[..., Any]] = {
    "pe_cpu": PeCpu,
    "pe_dma": PeDma,
    "pe_fetch_store": PeFetchStore,
    "pe_ipcq": PeIpcq,
    "pe_math": PeMath,
    "pe_mmu": PeMmu,
}
"""The engines of a PE; `impl:` in the topology file replaces one by a class with the same constructor and methods."""


class Pe:
    """The endpoint of a PE: everything that arrives goes to the engine it is for."""

    def __init__(self, chip: Surroundings, node: int) -> None:
        at = chip.graph.nodes[node]
        place = Place(chip.sip, at.cube, at.pe)
        topology = chip.topology
        self._engine, self.place = chip.engine, place
        self.tcm = Server(f"{place}: pe_tcm", topology.pe.tcm.bw_gbs)
        wiring = PeWiring(
            chip.engine, chip.fabric, topology, place, node, self.tcm, chip.log.add, chip.locate,
            lambda peer: (peer.sip, chip.graph.pe(peer.cube, peer.pe)), chip.flows.next,
        )  # fmt: skip
        self.tcm_port = MemoryPort(
            chip, node, Memory(f"{at.name}.tcm", topology.tcm_bytes, data=chip.data),
            chip.addresses.pe_tcm_addr(*place, 0), self._serve_tcm,
        )  # fmt: skip
        chosen = {kind: look_up(topology.impl.of(kind), ENGINES, "topology", f"impl.{kind}") for kind in ENGINES}
        self.dma: PeDma = chosen["pe_dma"](wiring)
        self.mmu: PeMmu = chosen["pe_mmu"]()
        self.ipcq: PeIpcq = chosen["pe_ipcq"](wiring)
        self.math: PeMath = chosen["pe_math"](wiring, chosen["pe_fetch_store"](wiring))
        self.cpu: PeCpu = chosen["pe_cpu"](chip, wiring, self)
        self._receivers: dict[Kind, Callable[[Packet, int], None]] = {
            Kind.WRITE: self.tcm_port.accept,
            Kind.READ: self.tcm_port.accept,
            Kind.IPCQ_DATA: self.tcm_port.accept,
            Kind.ACK: self.dma.answer,
            Kind.DATA: self.dma.answer,
            Kind.IPCQ_ARRIVAL: self.ipcq.accept,
            Kind.IPCQ_CREDIT: self.ipcq.accept,
            Kind.CONTROL: self._command,
        }

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Hand a packet to the engine it is for."""
        self._receivers[packet.kind](packet, tail_ps)

    def blocked(self) -> BlockedPe | None:
        """What the kernel on this PE waits for, if it waits for a peer."""
        return self.cpu.blocked()

    def check_idle(self) -> None:
        """At the end of a run no kernel runs, nothing is in flight and every credit is home."""
        if self.cpu.running or self.dma.in_flight:
            raise InvariantError(str(self.place), f"at the end {self.dma.in_flight} DMA requests are in flight")
        self.ipcq.check_idle()

    def _command(self, packet: Packet, tail_ps: int) -> None:
        assert isinstance(packet.body, PeCommand)
        self._engine.at(tail_ps, self.cpu.ordered, packet)

    def _serve_tcm(self, _offset: int, nbytes: int, head_ps: int, tail_ps: int, _writes: bool) -> tuple[int, int]:  # noqa: FBT001
        return self.tcm.reserve(head_ps, tail_ps, nbytes)
