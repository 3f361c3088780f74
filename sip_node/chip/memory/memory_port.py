"""The port of a memory on the fabric: answers READ and WRITE packets, announces full IPCQ slots.

HBM, SRAM and TCM share it. They differ in the bandwidth behind the port (`Serve`), not in protocol:

    READ ------> wait for all of the request; DATA, DATA, ... as the memory delivers <------
    WRITE -----> store as it arrives; after the last packet of the message ACK <------------
    IPCQ_DATA -> store as it arrives; after the last packet IPCQ_ARRIVAL to the ring's PE
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator

from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.chip.memory.memory import Memory
from sip_node.chip.strided_block import StridedBlock

Serve = Callable[[int, int, int, int, bool], tuple[int, int]]
"""(offset, bytes, head, tail, whether it writes) -> (start, tail) of the access, both in ps."""

ServeRows = Callable[[int, StridedBlock, tuple[int, int], int, int, bool], tuple[int, int]]
"""For rows: (offset of the first row, rows, (first packed byte, bytes), head, tail, writes)."""

READS, WRITES = False, True


class MemoryPort:
    """The port of the memory at fabric node `node`, at physical addresses from `base` on.

    `serve_rows` is given where the time of an access depends on the addresses of its bytes. The
    data of a READ leave `latency_ps` after the memory serves them.
    """

    def __init__(
        self,
        chip: ChipContext,
        node: int,
        memory: Memory,
        base: int,
        serve: Serve,
        serve_rows: ServeRows | None = None,
    ) -> None:
        self._engine, self._fabric = chip.engine, chip.fabric
        self._sip, self._node = chip.sip, node
        self.memory, self._base = memory, base
        self._serve, self._serve_rows = serve, serve_rows
        self.latency_ps = 0
        topology = chip.topology
        self._packet_bytes, self._control_bytes = topology.packet_bytes, topology.control_bytes
        self._rings: list[tuple[int, int, int]] = []
        self._early: list[Packet] = []
        self._written_ps: dict[tuple[int, int, int], int] = {}
        chip.memory_ports[node] = self

    def watch(self, ring_base: int, nbytes: int, pe_node: int) -> None:
        """Announce slots that fill in [ring_base, ring_base + nbytes) to the PE at `pe_node`."""
        self._rings.append((ring_base, ring_base + nbytes, pe_node))
        self._rings.sort()
        # Slots of this ring may be full already; those of rings without owner keep waiting.
        early, self._early = self._early, []
        for packet in early:
            self._announce(packet)

    def contents(self) -> Iterator[tuple[int, bytes]]:
        """(physical address, bytes) of every page that is not zero, without zeros at its ends."""
        for offset, page in self.memory.contents():
            content = page.lstrip(b"\0")
            yield self._base + offset + len(page) - len(content), content.rstrip(b"\0")

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Serve a WRITE, READ or IPCQ_DATA packet."""
        if packet.kind is Kind.READ:
            # Not cut-through: the descriptor must be complete before the memory can use it.
            self._engine.at(tail_ps, self._read, packet)
            return
        offset = packet.address - self._base
        _, done_ps = self._access(packet, offset, packet.begin, packet.size, tail_ps, WRITES)
        if packet.rows is None:
            self._engine.at(done_ps, self.memory.write, offset, packet.payload)
        else:
            self._engine.at(
                done_ps, self.memory.write_rows, offset, packet.rows, packet.begin, packet.payload
            )
        # Packets of a message lie on different channels: the last one to arrive need not be the
        # last one written, and an acknowledgement promises all of them.
        message = (packet.source_sip, packet.source_node, packet.tag)
        written_ps = max(done_ps, self._written_ps.pop(message, 0))
        if packet.last:
            self._engine.at(written_ps, self._written, packet)
        else:
            self._written_ps[message] = written_ps

    def _written(self, packet: Packet) -> None:
        if packet.kind is Kind.WRITE:
            self._answer(packet, Kind.ACK, packet.source_sip, packet.source_node)
        else:
            self._announce(packet)

    def _announce(self, packet: Packet) -> None:
        """Report a full slot to the PE that owns the ring."""
        owner = self._owner(packet.address)
        if owner is None:
            # The peer's queues were installed before those of the PE here, and it sends already.
            self._early.append(packet)
        else:
            self._answer(packet, Kind.IPCQ_ARRIVAL, self._sip, owner)

    def _owner(self, address: int) -> int | None:
        index = bisect_right(self._rings, address, key=lambda ring: ring[0]) - 1
        if index < 0 or address >= self._rings[index][1]:
            return None
        return self._rings[index][2]

    def _answer(self, packet: Packet, kind: Kind, sip: int, node: int) -> None:
        answer = Packet(
            kind=kind,
            source_sip=self._sip,
            source_node=self._node,
            sip=sip,
            node=node,
            size=self._control_bytes,
            address=packet.address,
            tag=packet.tag,
            total=packet.total,
            sent_ps=packet.sent_ps,
            flow=packet.flow,
            element=packet.element,
            call=packet.call,
        )
        self._fabric.send(answer, self._node, self._engine.now_ps)

    def _access(
        self,
        packet: Packet,
        offset: int,
        begin: int,
        nbytes: int,
        tail_ps: int,
        writes: bool,  # noqa: FBT001
    ) -> tuple[int, int]:
        now_ps = self._engine.now_ps
        if packet.rows is None or self._serve_rows is None:
            return self._serve(offset, nbytes, now_ps, tail_ps, writes)
        return self._serve_rows(offset, packet.rows, (begin, nbytes), now_ps, tail_ps, writes)

    def _read(self, request: Packet) -> None:
        """Stream the data back in packets; each leaves the latency after its service starts."""
        offset, now_ps = request.address - self._base, self._engine.now_ps
        leaves_ps = now_ps
        for begin in range(0, request.total, self._packet_bytes):
            size = min(self._packet_bytes, request.total - begin)
            start = offset if request.rows is not None else offset + begin
            start_ps, tail_ps = self._access(request, start, begin, size, now_ps, READS)
            # The channels of a short packet may be free before those of the packet before it.
            # It waits, since the requester takes the packet with the last byte for the end.
            leaves_ps = max(leaves_ps, start_ps)
            reply, tail_ps = self._reply(request, begin, size), max(tail_ps, leaves_ps)
            if self.memory.keeps_data:
                # The bytes as of their service: a write that is complete by then is visible.
                self._engine.at(leaves_ps, self._load, reply, request)
            self._engine.at(
                leaves_ps + self.latency_ps, self._send, reply, tail_ps + self.latency_ps
            )

    def _reply(self, request: Packet, begin: int, size: int) -> Packet:
        return Packet(
            kind=Kind.DATA,
            source_sip=self._sip,
            source_node=self._node,
            sip=request.source_sip,
            node=request.source_node,
            size=size,
            address=request.address + begin,
            tag=request.tag,
            total=request.total,
            last=begin + size == request.total,
            sent_ps=request.sent_ps,
            begin=begin,
        )

    def _load(self, reply: Packet, request: Packet) -> None:
        offset = request.address - self._base
        if request.rows is None:
            reply.payload = self.memory.read(offset + reply.begin, reply.size)
        else:
            reply.payload = self.memory.read_rows(offset, request.rows, reply.begin, reply.size)

    def _send(self, reply: Packet, tail_ps: int) -> None:
        self._fabric.send(reply, self._node, tail_ps)
