"""The port of a memory on the fabric: answers READ and WRITE, announces full IPCQ slots.

HBM, SRAM and TCM share it. They differ in the service behind the port (`Service`), not in protocol:

    READ ------> wait for all of the request; DATA, DATA, ... as the memory delivers <------
    WRITE -----> store when all of it is written, then ACK <--------------------------------
    IPCQ_DATA -> store when all of it is written, then IPCQ_ARRIVAL to the ring's PE
    ATOMIC ----> combine when all of it is read and written; OLD, OLD, ... or ACK <---------

`MemoryPackets` serves the packets; the port itself handles a transfer once. Others reserve the port
of a TCM directly, as the DMA does (`PortTurns`).
"""

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import sip_node.chip.fabric.packet as packets
from sip_node.chip.fabric.packet import AtomicUpdate, FabricTransfer, Kind, Packet
from sip_node.chip.fabric.server import FifoServer
from sip_node.chip.mapping.strided_block import StridedBlock
from sip_node.chip.memory.access import Access, AccessService, MessageKey, Service
from sip_node.chip.memory.memory import Memory
from sip_node.chip.memory.memory_packets import MemoryPackets, TransferStore
from sip_node.chip.records.packet_train import PacketTrain
from sip_node.kernel.containers.int_array import IntArray
from sip_node.kernel.outlet import Outlet
from sip_node.pdes.engine import Engine

if TYPE_CHECKING:
    from sip_node.chip.context import ChipContext


_NEXT = 0
_WRITE, _ACK, _DATA, _ARRIVAL = Kind.WRITE, Kind.ACK, Kind.DATA, Kind.IPCQ_ARRIVAL
_ATOMIC, _OLD = Kind.ATOMIC, Kind.OLD


class PortTurns(AccessService):
    """Serves the packets of the fabric at a port that others reserve directly.

    Each message has a queue of one at the port: a packet may reserve it when its predecessor
    starts. So between two of its packets a long message waits for one packet of each other message,
    and for what others have reserved.
    """

    def __init__(self, engine: Engine, port: FifoServer) -> None:
        self.join(engine)
        self._port, self.turns = port, 0
        # The port as the one channel of a memory.
        self._channels = IntArray()
        self._channels.append(0)
        # The packets behind a packet that has reserved the port and not begun; None for none.
        self._later: dict[MessageKey, deque[Access] | None] = {}

    def submit(self, access: Access) -> None:
        """Reserve the port for an access, or let it wait for its turn."""
        access.submitted_ps = self.engine.now_ps
        # A message by source and tag: the turns are between requests, not between engines.
        if access.message not in self._later:
            self._reserve(access, None)
            return
        behind = self._later[access.message]
        if behind is None:
            self._later[access.message] = deque([access])
        else:
            behind.append(access)

    def proceed(self, step: int, subject: Any) -> None:  # noqa: ARG002 - it has one step
        """The first access of the message `subject` has begun."""
        self.turns += 1
        behind = self._later.pop(subject)
        if behind:
            self._reserve(behind.popleft(), behind)

    def _reserve(self, access: Access, behind: deque[Access] | None) -> None:
        """Reserve the port for accesses of one message until one of them has to wait."""
        port, now_ps = self._port, self.engine.now_ps
        while True:
            train = access.train
            if train is not None and port.bins is not None:
                port.bins.waited_ps = now_ps - access.submitted_ps
            start_ps = port.serve(now_ps, access.tail_ps, access.nbytes)
            end_ps = port.tail_ps
            if train is not None:
                train.at_channels(self._channels, access.submitted_ps, start_ps, end_ps)
            if start_ps > now_ps:
                self._later[access.message] = behind
                self.later(start_ps, _NEXT, access.message)
                access.begun(start_ps, start_ps, end_ps)
                return
            access.begun(start_ps, start_ps, end_ps)
            if not behind:
                return
            access = behind.popleft()


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
        self._packet_bytes = chip.topology.packet_bytes
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
        if transfer.kind is _ATOMIC:
            self._combine(packet)
            return
        if transfer.payload:
            self._write(transfer.address - self._base, transfer.rows, transfer.payload)
        # After the store: so a load that begins when a store has completed reads what it wrote.
        if transfer.kind is _WRITE:
            self._notify(packet, _ACK, transfer.source_sip, transfer.source_node)
        else:
            self._announce(packet)

    def _write(self, offset: int, rows: StridedBlock | None, data: bytes | memoryview) -> None:
        if rows is None:
            self.memory.write(offset, data)
        else:
            self.memory.write_rows(offset, rows, 0, data)

    def _combine(self, packet: Packet) -> None:
        """Combine the elements of a block, and answer."""
        transfer, update = packet.transfer, packet.transfer.body
        assert isinstance(update, AtomicUpdate), "the body of an ATOMIC"
        offset, nbytes = transfer.address - self._base, transfer.total // update.operands
        old = self._read(offset, transfer.rows, nbytes)
        new = update.combine(old, transfer.payload)
        # In a run without data there are no bytes.
        if new:
            self._write(offset, transfer.rows, new)
        if not update.returns_old:
            self._notify(packet, _ACK, transfer.source_sip, transfer.source_node)
            return
        answer = self.answer(transfer)
        answer.kind, answer.total, answer.payload = _OLD, nbytes, old
        if packet.train is not None:
            answer.train = PacketTrain(packet.train.times)
        # The links serialise the packets, and all bytes are here.
        for begin in range(0, nbytes, self._packet_bytes):
            size = min(self._packet_bytes, nbytes - begin)
            piece = packets.new_packet(answer, begin, size, begin + size == nbytes)
            self._outlet.send(piece, self._engine.now_ps)

    def _announce(self, packet: Packet) -> None:
        """Report a full slot to the PE that owns the ring."""
        owner = self._owner(packet.address)
        if owner is None:
            # The peer's queues were installed before those of the PE here, and it sends already.
            self._early.append(packet)
        else:
            # By the memory, not by the sender: only here is it certain that the last byte is
            # written.
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
            if about.source_sip == self._sip:
                notice.step = about.step
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
        data.payload = self._read(data.address - self._base, data.rows, data.total)

    def _read(self, offset: int, rows: StridedBlock | None, nbytes: int) -> bytes:
        if rows is None:
            return self.memory.read(offset, nbytes)
        return self.memory.read_rows(offset, rows, 0, nbytes)
