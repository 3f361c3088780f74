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

import sip_node.chip.fabric.packet as packets
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.fabric.packet_train import PacketTrain
from sip_node.chip.memory.access import Service
from sip_node.chip.memory.memory import Memory
from sip_node.chip.memory.memory_packets import MemoryPackets, TransferStore
from sip_node.kernel.outlet import Outlet

if TYPE_CHECKING:
    from sip_node.chip.context import ChipContext

_WRITE, _ACK, _DATA, _ARRIVAL = Kind.WRITE, Kind.ACK, Kind.DATA, Kind.IPCQ_ARRIVAL


class MemoryPort(TransferStore):
    """The port of the memory at fabric node `node`, at physical addresses from `base` on.

    `service` decides when a packet is served. The data of a READ leave `latency_ps` after their
    service begins.
    """

    def __init__(
        self,
        chip: "ChipContext",
        node: int,
        memory: Memory,
        base: int,
        service: Service,
        latency_ps: int = 0,
    ) -> None:
        super().__init__(keeps_data=memory.keeps_data)
        self._engine, self._outlet = chip.engine, Outlet(chip.fabric, node)
        self._sip, self._node = chip.sip, node
        self.memory, self._base = memory, base
        self._control_bytes = chip.topology.control_bytes
        # The first addresses of the rings, sorted, and by these the end of each and its owner.
        self._ring_bases: list[int] = []
        self._rings: dict[int, tuple[int, int]] = {}
        self._early: list[Packet] = []
        self.packets = MemoryPackets(
            engine=chip.engine,
            fabric=chip.fabric,
            node=node,
            base=base,
            service=service,
            packet_bytes=chip.topology.packet_bytes,
            latency_ps=latency_ps,
            store=self,
        )
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
            yield self._base + offset + len(page) - len(content), bytes(content.rstrip(b"\0"))

    def written(self, packet: Packet) -> None:
        """All of a transfer is in the memory: its bytes become visible together."""
        transfer = packet.transfer
        if transfer.payload:
            offset = transfer.address - self._base
            if transfer.rows is None:
                self.memory.write(offset, transfer.payload)
            else:
                self.memory.write_rows(offset, transfer.rows, 0, transfer.payload)
        if transfer.kind is _WRITE:
            self._notify(packet, _ACK, transfer.source_sip, transfer.source_node)
        else:
            self._announce(packet)

    def _announce(self, packet: Packet) -> None:
        """Report a full slot to the PE that owns the ring."""
        owner = self._owner(packet.address)
        if owner is None:
            # The peer's queues were installed before those of the PE here, and it sends already.
            self._early.append(packet)
        else:
            self._notify(packet, _ARRIVAL, self._sip, owner)

    def _owner(self, address: int) -> int | None:
        index = bisect_right(self._ring_bases, address)
        if not index:
            return None
        end, owner = self._rings[self._ring_bases[index - 1]]
        return owner if address < end else None

    def _notify(self, packet: Packet, kind: Kind, sip: int, node: int) -> None:
        about = packet.transfer
        notice = packets.new_transfer(kind, self._sip, self._node, sip, node)
        notice.address, notice.tag, notice.total = packet.address, about.tag, about.total
        notice.sent_ps, notice.flow = about.sent_ps, about.flow
        notice.element, notice.call = about.element, about.call
        if packet.train is not None:
            notice.train = PacketTrain(packet.train.times)
        announcement = packets.new_packet(notice, 0, self._control_bytes, True)
        self._outlet.send(announcement, self._engine.now_ps)

    def answer(self, request: FabricTransfer) -> FabricTransfer:
        """The DATA that answers a READ, without its bytes."""
        answer = packets.new_transfer(
            _DATA, self._sip, self._node, request.source_sip, request.source_node
        )
        answer.address, answer.tag = request.address, request.tag
        answer.total, answer.sent_ps, answer.rows = request.total, request.sent_ps, request.rows
        return answer

    def load(self, data: FabricTransfer) -> None:
        """Read the bytes of an answer once, at the service of its last piece."""
        offset = data.address - self._base
        if data.rows is None:
            data.payload = self.memory.read(offset, data.total)
        else:
            data.payload = self.memory.read_rows(offset, data.rows, 0, data.total)
