"""What a component is handed when the chip is built: the clock, the fabric and the facts of its SIP."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from runtime.core.errors import PhysAddrError
from runtime.model.addresses import AddressMap, PhysAddr
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from runtime.model.topology import Topology
from sip_node.chip.fabric.fabric import Fabric
from sip_node.chip.kernel import StartKernel
from sip_node.chip.memory.memory import Memory
from sip_node.chip.op_log import OpLog
from sip_node.chip.send_bounds import SendBounds
from sip_node.pdes.engine import Engine


class RingMemory(Protocol):
    """A memory that receive rings can lie in."""

    memory: Memory

    def watch(self, ring_base: int, nbytes: int, pe_node: int) -> None:
        """Announce slots that fill in [ring_base, ring_base + nbytes) to the PE at `pe_node`."""
        ...

    def contents(self) -> Iterator[tuple[int, bytes]]:
        """(physical address, bytes) of what is not zero in it."""
        ...


class Flows:
    """Numbers the transfers of a SIP to each other SIP; a trace draws them as arrows."""

    def __init__(self, sip: int) -> None:
        self._sip = sip
        self._sent: Counter[int] = Counter()

    def next(self, target: int) -> tuple[int, int, int]:
        """(source sip, target sip, sequence) of the next transfer to `target`."""
        self._sent[target] += 1
        return self._sip, target, self._sent[target]


@dataclass(frozen=True)
class ChipContext:
    """One per SIP. A component's constructor takes it and the index of the component's node."""

    sip: int
    topology: Topology
    graph: ChipGraph
    routes: ChipRoutes
    addresses: AddressMap
    engine: Engine
    fabric: Fabric
    log: OpLog
    send_bounds: SendBounds
    data: bool
    remote_dma: bool
    flows: Flows
    memory_ports: dict[int, RingMemory]
    start_kernel: StartKernel

    def watch_ring(self, base: int, nbytes: int, pe_node: int) -> None:
        """Let the memory at physical address `base` announce slots that fill in [base, base + nbytes) to a PE."""
        _, node = self.locate(base)
        self.memory_ports[node].watch(base, nbytes, pe_node)

    def locate(self, address: int) -> tuple[int, int]:
        """(sip, node) of the memory that holds a physical address; all SIPs have the same nodes.

        Raises `PhysAddrError` for what is no memory on the fabric: the registers of a PE and of an M_CPU.
        """
        where = PhysAddr.decode(address, self.addresses)
        if where.resource == "hbm":
            return where.sip, self.graph.hbm(where.cube, where.pe)
        if where.resource == "sram":
            return where.sip, self.graph.sram(where.cube)
        if where.resource == "tcm":
            return where.sip, self.graph.pe(where.cube, where.pe)
        raise PhysAddrError(
            f"{address:#x}",
            f"{where.resource} is not a memory that packets reach; hbm, tcm and sram are",
        )
