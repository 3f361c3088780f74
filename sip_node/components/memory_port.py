"""How a memory answers packets. HBM, SRAM and TCM differ in the bandwidth behind the port, not in what they say."""

from bisect import bisect_right
from collections.abc import Callable

from sip_node.components.packet import Kind, Packet
from sip_node.components.surroundings import Surroundings
from sip_node.memory import Memory

Serve = Callable[[int, int, int, int, bool], tuple[int, int]]
"""(offset, bytes, head, tail, whether it writes) -> (start, tail) of the access, both in ps."""

READS, WRITES = False, True


class MemoryPort:
    """One memory at node `node` of the fabric, occupying physical addresses from `base`."""

    def __init__(self, chip: Surroundings, node: int, memory: Memory, base: int, serve: Serve) -> None:
        self._engine, self._fabric = chip.engine, chip.fabric
        self._sip, self._node = chip.sip, node
        self.memory, self._base = memory, base
        self._serve = serve
        self._packet_bytes, self._control_bytes = chip.topology.packet_bytes, chip.topology.control_bytes
        self._rings: list[tuple[int, int, int]] = []
        self._written_ps: dict[tuple[int, int, int], int] = {}
        chip.memory_ports[node] = self

    def watch(self, ring_base: int, nbytes: int, pe_node: int) -> None:
        """Announce slots that fill in [ring_base, ring_base + nbytes) to the PE at `pe_node`."""
        self._rings.append((ring_base, ring_base + nbytes, pe_node))
        self._rings.sort()

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Serve a WRITE, READ or IPCQ_DATA packet."""
        if packet.kind is Kind.READ:
            self._engine.at(tail_ps, self._read, packet)
            return
        offset = packet.address - self._base
        _, done_ps = self._serve(offset, packet.size, self._engine.now_ps, tail_ps, WRITES)
        self._engine.at(done_ps, self.memory.write, offset, packet.payload)
        # Packets of a message lie on different channels: the last one to come need not be the last one written.
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
            self._answer(packet, Kind.IPCQ_ARRIVAL, self._sip, self._owner(packet.address))

    def _owner(self, address: int) -> int:
        index = bisect_right(self._rings, address, key=lambda ring: ring[0]) - 1
        assert index >= 0 <= self._rings[index][1] - address - 1, f"{self.memory.name}: no receive ring at {address:#x}"
        return self._rings[index][2]

    def _answer(self, packet: Packet, kind: Kind, sip: int, node: int) -> None:
        answer = Packet(
            kind, self._sip, self._node, sip, node, self._control_bytes, packet.address, packet.tag, packet.total,
            sent_ps=packet.sent_ps, flow=packet.flow,
        )  # fmt: skip
        self._fabric.send(answer, self._node, self._engine.now_ps)

    def _read(self, request: Packet) -> None:
        """Stream the data back in packets; each leaves when the memory starts to deliver it."""
        begin, now_ps = request.address - self._base, self._engine.now_ps
        leaves_ps = now_ps
        for done in range(0, request.total, self._packet_bytes):
            size = min(self._packet_bytes, request.total - done)
            start_ps, tail_ps = self._serve(begin + done, size, now_ps, now_ps, READS)
            # The channels of a short packet may be free before those of the one it follows; data goes back in order.
            leaves_ps = max(leaves_ps, start_ps)
            self._engine.at(leaves_ps, self._reply, request, done, size, max(tail_ps, leaves_ps))

    def _reply(self, request: Packet, done: int, size: int, tail_ps: int) -> None:
        payload = self.memory.read(request.address - self._base + done, size)
        last = done + size == request.total
        reply = Packet(
            Kind.DATA, self._sip, self._node, request.source_sip, request.source_node, size, request.address + done,
            request.tag, request.total, last, request.sent_ps, payload,
        )  # fmt: skip
        self._fabric.send(reply, self._node, tail_ps)
