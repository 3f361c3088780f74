"""The DMA engine of a PE: moves blocks between its TCM and any memory, a few requests at a time.

One request moves one block, whether its bytes are contiguous or rows at one pitch: the packet
carries a descriptor of the rows, by which the memory gathers or scatters them, and in flight the
bytes are packed. The packets of the six kinds of request:

    read    READ, READ, ... ---> far memory ---> DATA, DATA, ... ---> TCM
    gather  READ, READ, ... ---> memories of the rows ---> DATA, DATA, ... ---> TCM
    write   TCM ---> WRITE, WRITE, ... ---> far memory ---> ACK
    copy    READ ... ---> one memory ---> DATA ... ---> WRITE ... ---> another memory ---> ACK
    push    TCM ---> IPCQ_DATA ... ---> ring of the peer           (no answer: credits bound it)
    update  TCM ---> ATOMIC, ... ---> far memory ---> OLD, ... ---> TCM, or ACK

At most `channels` requests are outstanding, the others queue. The packets of a request are the
concern of four parts: `ReadWindow` divides a READ and bounds the packets on their way to the
engine, `IndexedRead` makes the READs of a gather, `DataLanding` takes what comes back,
`EgressStream` divides what leaves TCM.
"""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import sip_node.chip.fabric.packet as packets
from runtime.core.run_tables import NONE
from runtime.core.simtime import ps_from_ns
from runtime.core.trace import Operand
from sip_node.chip.completion import Completion
from sip_node.chip.fabric.egress_stream import EgressStream
from sip_node.chip.fabric.packet import ELEMENTS, AtomicUpdate, FabricTransfer, Kind, Packet
from sip_node.chip.mapping.strided_block import StridedBlock, layout_of
from sip_node.chip.pe.read_window import DataLanding, IndexedRead, ReadWindow
from sip_node.chip.pe.tcm import direct_memory
from sip_node.chip.records.packet_train import PacketTrain, QueueTimes
from sip_node.kernel import checksums, records
from sip_node.kernel.component import Component

if TYPE_CHECKING:
    from sip_node.chip.pe.context import PeContext

_READ, _WRITE, _SLOT = Kind.READ, Kind.WRITE, Kind.IPCQ_DATA
_ATOMIC, _OLD = Kind.ATOMIC, Kind.OLD
# What an event of a request goes on with.
READ_BEGINS, ROWS_BEGIN, WRITE_BEGINS, FINISHED = range(4)


class DmaRequest:
    """A request: `reading` is the READ of a block, `writing` the transfer that writes one.

    A copy has both; a gather has `rows` instead. All of them carry `tag`. `inputs` are the blocks
    that it reads. `data` are the packed bytes that it carries or has received, `total` of them,
    with `checksum` from its end on. `packet_bytes` is the size of the packets that leave TCM.
    `start_ps` is the time at which it got a channel, `requested_ps` that at which it was queued.
    In a run with records, `times` are what its packets have queued, and a call in `step` has issued
    it.
    """

    def __init__(
        self, name: str, inputs: tuple[Operand, ...], target: Operand, packet_bytes: int, tag: int
    ) -> None:
        self.name, self.inputs, self.target = name, inputs, target
        self.packet_bytes, self.tag, self.data = packet_bytes, tag, b""
        self.rows: IndexedRead | None = None
        self.reading: FabricTransfer | None = None
        self.writing: FabricTransfer | None = None
        self.times: QueueTimes | None = None
        self.total = self.start_ps = self.requested_ps = self.checksum = 0
        self.step = NONE
        self.done = Completion[bytes]()

    def complete(self) -> None:
        """Hand over the bytes; the request has left its channel."""
        self.done.complete(self.data)


class PeDma(Component):
    """Keeps at most `channels` requests outstanding; the others queue in order.

    The time of a request starts when it gets a channel. Blocks have physical addresses. Every
    request completes with its bytes in row-major order, empty in a run without data, and raises
    `ValueError` for a far block that no descriptor can hold.
    """

    def __init__(self, context: "PeContext") -> None:
        self.join(context.engine)
        topology, pe = context.topology, context.coordinates
        self._overhead_ps = ps_from_ns(topology.pe.dma.overhead_ns)
        self._gather_row_ps = ps_from_ns(topology.pe.dma.gather_row_ns)
        self._packet_bytes = topology.packet_bytes
        # Channels bound requests, the window of the reads bounds packets: many channels hide the
        # latency of short requests, many packets that of long ones.
        self.idle_channels = topology.pe.dma.channels
        self.waiting: deque[DmaRequest] = deque()
        self.requests: dict[int, DmaRequest] = {}
        self.sip, self.node, self._cube, self._pe = pe.sip, context.node, pe.cube, pe.pe
        self.tcm, self.locate, self._next_flow = context.tcm, context.locate, context.next_flow
        self._memory, self._memory_base = direct_memory(context.tcm), context.tcm.base
        self._log, self._records = context.log, context.log.recorder is not None
        port, fabric, node = context.tcm.server, context.fabric, context.node
        self.window = ReadWindow(
            context.engine,
            fabric,
            node,
            topology.pe.dma.outstanding,
            topology.packet_bytes,
            topology.control_bytes,
        )
        self.stream = EgressStream(context.engine, port, fabric, node, self._left)
        self.landing = DataLanding(context.engine, port, fabric, node, self.window, self.landed)
        self.tags = self.busy_ps = self.nbytes = 0

    @property
    def in_flight(self) -> int:
        """The number of requests that have not completed."""
        return len(self.requests)

    def read(self, source: Operand, target: Operand, name: str = "load") -> Completion[bytes]:
        """Copy a block of any memory to our TCM; completes when its last byte is there."""
        request = self._request(name, (source,), target)
        request.reading = self._transfer(_READ, source, b"", request)
        self._enqueue(request)
        return request.done

    def gather(
        self, rows: Sequence[Operand], target: Operand, list_bytes: int, indices: Operand | None
    ) -> Completion[bytes]:
        """Copy blocks of any memories to our TCM, one behind the other, as one request.

        Their list has `list_bytes`; `indices` is the value that it is, if there is one, for the
        record.
        """
        inputs = (*rows, *(() if indices is None else (indices,)))
        request = self._request("gather", inputs, target)
        request.rows = self.indexed(rows, list_bytes)
        request.total = request.rows.tagged(request.tag)
        self._enqueue(request)
        return request.done

    def write(
        self, source: Operand, target: Operand, data: bytes, name: str = "store"
    ) -> Completion[bytes]:
        """Copy a block of our TCM, with elements `data`, to any memory; completes with its ACK."""
        request = self._request(name, (source,), target)
        request.data = data
        request.writing = self._transfer(_WRITE, target, data, request)
        self._enqueue(request)
        return request.done

    def copy(self, source: Operand, target: Operand, name: str) -> Completion[bytes]:
        """Copy a block from one memory to another, past our TCM; completes with the ACK."""
        request = self._request(name, (source,), target)
        request.writing = self._transfer(_WRITE, target, b"", request)
        # The record has the bytes of the READ.
        request.reading = self._transfer(_READ, source, b"", request)
        self._enqueue(request)
        return request.done

    def push(
        self, source: Operand, target: Operand, data: bytes, packet_bytes: int, call: str = ""
    ) -> Completion[bytes]:
        """Write an IPCQ slot in packets of `packet_bytes`; completes when the data has left TCM.

        The slot's metadata names the element type of `source` and the collective call that it
        belongs to.
        """
        request = self._request("ipcq_send", (source,), target)
        request.data, request.packet_bytes = data, packet_bytes
        slot = request.writing = self._transfer(_SLOT, target, data, request)
        slot.element, slot.call = ELEMENTS.index(source.dtype), call
        # Numbered here and not when the channel is free: the order of the calls is the order of
        # the arrows in a trace.
        if slot.sip != slot.source_sip:
            slot.flow = self._next_flow(slot.sip)
        self._enqueue(request)
        return request.done

    def update(
        self,
        name: str,
        inputs: tuple[Operand, ...],
        target: Operand,
        block: Operand,
        data: bytes,
        update: AtomicUpdate,
    ) -> Completion[bytes]:
        """Combine a block of any memory with operands in our TCM, whose elements are `data`.

        Completes with the old elements, once they are in TCM at `target`, or with the ACK.
        """
        request = self._request(name, inputs, target)
        request.data = data
        request.writing = self._transfer(_ATOMIC, block, data, request)
        request.writing.body = update
        # The record has the bytes of the block, the packets those of all operands.
        request.writing.total *= update.operands
        self._enqueue(request)
        return request.done

    def read_from(
        self, request: DmaRequest, sip: int, node: int, address: int, rows: StridedBlock | None
    ) -> None:
        """Read a block whose memory and layout the caller has found, as `read` does.

        The caller has set the inputs, the target, the total and the step of a request.
        """
        self._complement(request, "load")
        request.data = b""
        request.reading = reading = packets.new_transfer(_READ, self.sip, self.node, sip, node)
        reading.address, reading.rows, reading.total = address, rows, request.total
        reading.tag, reading.step = request.tag, request.step
        self._enqueue(request)

    def write_to(self, request: DmaRequest) -> None:
        """Write the bytes of a request with inputs, target and step, as `write` does."""
        self._complement(request, "store")
        request.writing = self._transfer(_WRITE, request.target, request.data, request)
        self._enqueue(request)

    def acknowledged(self, packet: Packet, tail_ps: int) -> None:
        """Take the ACK of a write, whose last byte arrives at `tail_ps`."""
        request = self.requests[packet.transfer.tag]
        if request.times is not None and packet.train is not None:
            request.times.add(packet.train.times)
        self.later(tail_ps, FINISHED, request)

    def landed(self, data: FabricTransfer, landed_ps: int) -> None:
        """The DATA of a request has come; all of it is in TCM, or on its way on, at `landed_ps`."""
        request = self.requests[data.tag]
        if request.times is not None and data.train is not None:
            request.times.add(data.train.times)
        if request.rows is not None:
            if request.rows.landed(data, landed_ps):
                request.data = request.rows.data
                self.later(request.rows.landed_ps, FINISHED, request)
            return
        request.data = bytes(data.payload)
        if data.kind is _OLD:
            # From here on it is a read: the bytes go to TCM.
            request.writing = None
        if request.writing is None:
            self.later(landed_ps, FINISHED, request)

    def _left(self, transfer: FabricTransfer, left_ps: int) -> None:
        """The last byte of a transfer leaves TCM at `left_ps`; only a slot has no answer."""
        if transfer.kind is _SLOT:
            self.later(left_ps, FINISHED, self.requests[transfer.tag])

    def indexed(self, rows: Sequence[Operand], list_bytes: int) -> IndexedRead:
        """The READs of a gather, without their tag."""
        return IndexedRead(
            engine=self.engine,
            port=self.tcm.server,
            window=self.window,
            row_ps=self._gather_row_ps,
            list_bytes=list_bytes,
            reads=[self._transfer(_READ, row, b"", None) for row in rows],
        )

    def proceed(self, step: int, subject: Any) -> None:
        """Go on with a request."""
        request: DmaRequest = subject
        if step == FINISHED:
            self._finish(request)
        elif step == READ_BEGINS:
            self.window.begin(request.reading)  # type: ignore[arg-type]
        elif step == WRITE_BEGINS:
            self.stream.start(request.writing, request.packet_bytes)  # type: ignore[arg-type]
        else:
            request.rows.begin()  # type: ignore[union-attr]

    def _request(self, name: str, inputs: tuple[Operand, ...], target: Operand) -> DmaRequest:
        # A block that no descriptor holds raises before it is counted.
        request = DmaRequest(name, inputs, target, self._packet_bytes, self.tags + 1)
        request.step = self._log.step
        return request

    def _complement(self, request: DmaRequest, name: str) -> None:
        """Set what the caller has not set of a request that no one waits for by `done`."""
        request.name, request.packet_bytes, request.tag = name, self._packet_bytes, self.tags + 1
        request.reading = request.writing = request.rows = request.times = None
        request.start_ps = request.requested_ps = request.checksum = 0

    def _transfer(
        self, kind: Kind, block: Operand, data: bytes, request: DmaRequest | None
    ) -> FabricTransfer:
        """The transfer about a block on the far side of the fabric."""
        sip, node = self.locate(block.address)
        nbytes, rows = layout_of(block)
        transfer = packets.new_transfer(kind, self.sip, self.node, sip, node)
        transfer.address, transfer.total = block.address, nbytes
        transfer.payload, transfer.rows = data, rows
        if request is not None:
            transfer.tag, transfer.step, request.total = request.tag, request.step, nbytes
        return transfer

    def _enqueue(self, request: DmaRequest) -> None:
        self.tags += 1
        self.requests[request.tag] = request
        request.requested_ps = self.engine.now_ps
        if self._records:
            self._give_trains(request)
        if self.idle_channels:
            self._begin(request)
        else:
            self.waiting.append(request)

    def _give_trains(self, request: DmaRequest) -> None:
        """Add the queueing times of the packets of a request to its own."""
        times = request.times = QueueTimes()
        if request.reading is not None:
            request.reading.train = PacketTrain(times)
        if request.writing is not None:
            request.writing.train = PacketTrain(times)
        if request.rows is not None:
            request.rows.give_trains(times)

    def _begin(self, request: DmaRequest) -> None:
        """Give a request the channel that is idle."""
        self.idle_channels -= 1
        # Time in the queue is the requester's wait, not the engine's work.
        request.start_ps = now_ps = self.engine.now_ps
        # Once for a request: the engine makes its descriptor, and packets that follow need no
        # further one.
        begins_ps = now_ps + self._overhead_ps
        reading, writing = request.reading, request.writing
        if writing is not None:
            writing.sent_ps = now_ps
        if request.rows is not None:
            self.later(begins_ps, ROWS_BEGIN, request)
        elif reading is not None:
            reading.sent_ps = now_ps
            if writing is not None:
                self.landing.forward(writing)
            self.later(begins_ps, READ_BEGINS, request)
        else:
            self.later(begins_ps, WRITE_BEGINS, request)

    def _finish(self, request: DmaRequest) -> None:
        del self.requests[request.tag]
        now_ps, writing = self.engine.now_ps, request.writing
        target, data = request.target, request.data
        self.busy_ps += now_ps - request.start_ps
        self.nbytes += request.total
        if writing is None and data:
            if self._memory is not None and not target.strides:
                self._memory.write(target.address - self._memory_base, data)
            else:
                self.tcm.write(target, data)
        request.checksum = checksums.checksum_of(data)
        records.enter(
            self._log,
            "pe_dma",
            request.name,
            request.start_ps,
            now_ps,
            self._cube,
            self._pe,
            request.total,
            request.checksum,
            request.requested_ps,
            records.FOR_CHANNEL,
            request.step,
            target,
            request.inputs,
            None if writing is None else writing.flow,
            request.times,
        )
        # Reassign the channel before the requester continues: requests that wait are older than
        # its next one.
        self.idle_channels += 1
        if self.waiting:
            self._begin(self.waiting.popleft())
        request.complete()
