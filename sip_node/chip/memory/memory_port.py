"""The port of a memory on the fabric: answers READ and WRITE, announces full IPCQ slots.

HBM, SRAM and TCM share it. They differ in the service behind the port (`Service`), not in protocol:

    READ ------> wait for all of the request; DATA, DATA, ... as the memory delivers <------
    WRITE -----> store when all of it is written, then ACK <--------------------------------
    IPCQ_DATA -> store when all of it is written, then IPCQ_ARRIVAL to the ring's PE

`MemoryPackets` serves the packets; the port itself handles a transfer once.
"""

from bisect import bisect_right, insort
from collections.abc import Iterator
from typing import TYPE_CHECKING

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.fabric.packet_train import PacketTrain
from sip_node.chip.memory.memory import Memory
from sip_node.chip.memory.memory_packets import MemoryPackets, TransferStore
from sip_node.chip.memory.transaction_queue import Service


class ReferenceMemoryPort:
    """The port of the memory at fabric node `node`, at physical addresses from `base` on.

    `service` decides when a packet is served. The data of a READ leave `latency_ps` after their
    service begins.
    """

    def __init__(
        self,
        chip: ChipContext,
        node: int,
        memory: Memory,
        base: int,
        service: Service,
        latency_ps: int = 0,
    ) -> None:
        self._engine, self._fabric = chip.engine, chip.fabric
        self._sip, self._node = chip.sip, node
        self.memory, self._base = memory, base
        self.keeps_data = memory.keeps_data
        self._control_bytes = chip.topology.control_bytes
        # The first addresses of the rings, sorted, and by these the end of each and its owner.
        self._ring_bases: list[int] = []
        self._rings: dict[int, tuple[int, int]] = {}
        self._early: list[Packet] = []
        self.packets = _packets(chip, node, base, service, latency_ps, self)
        self.accept = self.packets.accept
        chip.memory_ports[node] = self

    def watch(self, ring_base: int, nbytes: int, pe_node: int) -> None:
        """Announce slots that fill in [ring_base, ring_base + nbytes) to the PE at `pe_node`."""
        insort(self._ring_bases, ring_base)
        self._rings[ring_base] = ring_base + nbytes, pe_node
        # Slots of this ring may be full already; those of rings without owner keep waiting.
        early, self._early = self._early, []
        for packet in early:
            self._announce(packet)

    def contents(self) -> Iterator[tuple[int, bytes]]:
        """(physical address, bytes) of every page that is not zero, without zeros at its ends."""
        for offset, page in self.memory.contents():
            content = page.lstrip(b"\0")
            yield self._base + offset + len(page) - len(content), content.rstrip(b"\0")

    def written(self, packet: Packet) -> None:
        """All of a transfer is in the memory: its bytes become visible together."""
        transfer = packet.transfer
        if transfer.payload:
            offset = transfer.address - self._base
            if transfer.rows is None:
                self.memory.write(offset, transfer.payload)
            else:
                self.memory.write_rows(offset, transfer.rows, 0, transfer.payload)
        if transfer.kind is Kind.WRITE:
            self._notify(packet, Kind.ACK, transfer.source_sip, transfer.source_node)
        else:
            self._announce(packet)

    def _announce(self, packet: Packet) -> None:
        """Report a full slot to the PE that owns the ring."""
        owner = self._owner(packet.address)
        if owner is None:
            # The peer's queues were installed before those of the PE here, and it sends already.
            self._early.append(packet)
        else:
            self._notify(packet, Kind.IPCQ_ARRIVAL, self._sip, owner)

    def _owner(self, address: int) -> int | None:
        index = bisect_right(self._ring_bases, address)
        if not index:
            return None
        end, owner = self._rings[self._ring_bases[index - 1]]
        return owner if address < end else None

    def _notify(self, packet: Packet, kind: Kind, sip: int, node: int) -> None:
        about = packet.transfer
        notice = FabricTransfer(
            kind=kind,
            source_sip=self._sip,
            source_node=self._node,
            sip=sip,
            node=node,
            address=packet.address,
            tag=about.tag,
            total=about.total,
            sent_ps=about.sent_ps,
            flow=about.flow,
            element=about.element,
            call=about.call,
            train=None if packet.train is None else PacketTrain(packet.train.times),
        )
        self._fabric.send(Packet(notice, 0, self._control_bytes), self._node, self._engine.now_ps)

    def answer(self, request: FabricTransfer) -> FabricTransfer:
        """The DATA that answers a READ, without its bytes."""
        return FabricTransfer(
            kind=Kind.DATA,
            source_sip=self._sip,
            source_node=self._node,
            sip=request.source_sip,
            node=request.source_node,
            address=request.address,
            tag=request.tag,
            total=request.total,
            sent_ps=request.sent_ps,
            rows=request.rows,
        )

    def load(self, data: FabricTransfer) -> None:
        """Read the bytes of an answer once, at the service of its last piece."""
        offset = data.address - self._base
        if data.rows is None:
            data.payload = self.memory.read(offset, data.total)
        else:
            data.payload = self.memory.read_rows(offset, data.rows, 0, data.total)


def _packets(
    chip: ChipContext,
    node: int,
    base: int,
    service: Service,
    latency_ps: int,
    store: TransferStore,
) -> MemoryPackets:
    return MemoryPackets(
        engine=chip.engine,
        fabric=chip.fabric,
        node=node,
        base=base,
        service=service,
        packet_bytes=chip.topology.packet_bytes,
        latency_ps=latency_ps,
        store=store,
    )


if TYPE_CHECKING or not IS_COMPILED:
    MemoryPort = ReferenceMemoryPort
else:
    from sip_node.compiled import memory_port

    class MemoryPort(memory_port.MemoryPort):
        """The port in C; see `ReferenceMemoryPort`."""

        def __init__(
            self,
            chip: ChipContext,
            node: int,
            memory: Memory,
            base: int,
            service: Service,
            latency_ps: int = 0,
        ) -> None:
            super().__init__(chip, node, memory, base, (Kind.DATA, Kind.ACK, Kind.IPCQ_ARRIVAL))
            self.serve(_packets(chip, node, base, service, latency_ps, self))
