"""The DMA engine of a PE: moves blocks between its TCM and any memory, a few requests at a time.

One request moves one block, whether its bytes are contiguous or rows at one pitch: the packet
carries a descriptor of the rows, by which the memory gathers or scatters them, and in flight the
bytes are packed. The packets of the five kinds of request:

    read    READ, READ, ... ---> far memory ---> DATA, DATA, ... ---> TCM
    gather  READ, READ, ... ---> memories of the rows ---> DATA, DATA, ... ---> TCM
    write   TCM ---> WRITE, WRITE, ... ---> far memory ---> ACK
    copy    READ ... ---> one memory ---> DATA ... ---> WRITE ... ---> another memory ---> ACK
    push    TCM ---> IPCQ_DATA ... ---> ring of the peer           (no answer: credits bound it)

At most `channels` requests are outstanding, the others queue. The packets of a request are the
concern of four parts: `ReadWindow` divides a READ and bounds the packets on their way to the
engine, `IndexedRead` makes the READs of a gather, `DataLanding` takes what comes back,
`EgressStream` divides what leaves TCM.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from msgspec import Struct, field

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.run_tables import Cause
from runtime.core.simtime import ps_from_ns
from runtime.core.trace import Operand, OpRecord
from sip_node.chip.completion import Completion
from sip_node.chip.fabric.egress_stream import EgressStream
from sip_node.chip.fabric.packet import ELEMENTS, FabricTransfer, Kind, Packet
from sip_node.chip.fabric.packet_train import PacketTrain, QueueTimes
from sip_node.chip.memory.memory import Memory
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.data_landing import DataLanding
from sip_node.chip.pe.indexed_read import IndexedRead
from sip_node.chip.pe.read_window import ReadWindow
from sip_node.chip.pe.tcm import PeTcm, direct_memory
from sip_node.chip.strided_block import StridedBlock, layout_of


class _DmaRequest(Struct):
    """One request: `reading` is the READ of a block, `writing` the transfer that writes one.

    A copy has both; a gather has `rows` instead. All of them carry `tag`. `inputs` are the blocks
    that it reads. `data` are the packed bytes that it carries or has received, `total` of them.
    `packet_bytes` is the size of the packets that leave TCM. `start_ps` is the time at which it got
    a channel, `requested_ps` that at which it was queued. `times` are what its packets have queued,
    in a run with records.
    """

    name: str
    inputs: tuple[Operand, ...]
    target: Operand
    packet_bytes: int
    tag: int = 0
    total: int = 0
    rows: IndexedRead | None = None
    reading: FabricTransfer | None = None
    writing: FabricTransfer | None = None
    data: bytes = b""
    start_ps: int = 0
    requested_ps: int = 0
    times: QueueTimes | None = None
    done: Completion[bytes] = field(default_factory=Completion)


class ReferencePeDma:
    """Keeps at most `channels` requests outstanding; the others queue in order.

    The time of a request starts when it gets a channel. Blocks have physical addresses. Every
    request completes with its bytes in row-major order, empty in a run without data, and raises
    `ValueError` for a far block that no descriptor can hold.
    """

    def __init__(self, context: PeContext) -> None:
        self._context, self._engine = context, context.engine
        topology = context.topology
        self._overhead_ps = ps_from_ns(topology.pe.dma.overhead_ns)
        self._gather_row_ps = ps_from_ns(topology.pe.dma.gather_row_ns)
        self._packet_bytes = topology.packet_bytes
        self._idle_channels = topology.pe.dma.channels
        self._waiting: deque[_DmaRequest] = deque()
        self._requests: dict[int, _DmaRequest] = {}
        self._sip, self._node, self._tcm = context.coordinates.sip, context.node, context.tcm
        port, fabric, node = context.tcm.server, context.fabric, context.node
        self._window = ReadWindow(
            self._engine,
            fabric,
            node,
            topology.pe.dma.outstanding,
            topology.packet_bytes,
            topology.control_bytes,
        )
        self._stream = EgressStream(self._engine, port, fabric, node, self._left)
        self.landing = DataLanding(self._engine, port, fabric, node, self._window, self.landed)
        self._tags = 0
        self.busy_ps = 0
        self.nbytes = 0

    @property
    def in_flight(self) -> int:
        """The number of requests that have not completed."""
        return len(self._requests)

    def read(self, source: Operand, target: Operand, name: str = "load") -> Completion[bytes]:
        """Copy a block of any memory to our TCM; completes when its last byte is there."""
        request = _DmaRequest(name, (source,), target, self._packet_bytes)
        request.reading = self._transfer(Kind.READ, source)
        return self._enqueue(request)

    def gather(
        self, rows: Sequence[Operand], target: Operand, list_bytes: int, indices: Operand | None
    ) -> Completion[bytes]:
        """Copy blocks of any memories to our TCM, one behind the other, as one request.

        Their list has `list_bytes`; `indices` is the value that it is, if there is one, for the
        record.
        """
        inputs = (*rows, *(() if indices is None else (indices,)))
        request = _DmaRequest("gather", inputs, target, self._packet_bytes)
        request.rows = self.indexed(rows, list_bytes)
        return self._enqueue(request)

    def write(
        self, source: Operand, target: Operand, data: bytes, name: str = "store"
    ) -> Completion[bytes]:
        """Copy a block of our TCM, with elements `data`, to any memory; completes with its ACK."""
        request = _DmaRequest(name, (source,), target, self._packet_bytes, data=data)
        request.writing = self._transfer(Kind.WRITE, target, data)
        return self._enqueue(request)

    def copy(self, source: Operand, target: Operand, name: str) -> Completion[bytes]:
        """Copy a block from one memory to another, past our TCM; completes with the ACK."""
        request = _DmaRequest(name, (source,), target, self._packet_bytes)
        request.reading = self._transfer(Kind.READ, source)
        request.writing = self._transfer(Kind.WRITE, target)
        return self._enqueue(request)

    def push(
        self, source: Operand, target: Operand, data: bytes, packet_bytes: int, call: str = ""
    ) -> Completion[bytes]:
        """Write an IPCQ slot in packets of `packet_bytes`; completes when the data has left TCM.

        The slot's metadata names the element type of `source` and the collective call that it
        belongs to.
        """
        request = _DmaRequest("ipcq_send", (source,), target, packet_bytes, data=data)
        slot = request.writing = self._transfer(Kind.IPCQ_DATA, target, data)
        slot.element, slot.call = ELEMENTS.index(source.dtype), call
        # Numbered here and not when the channel is free: the order of the calls is the order of
        # the arrows in a trace.
        if slot.sip != slot.source_sip:
            slot.flow = self._context.next_flow(slot.sip)
        return self._enqueue(request)

    def acknowledged(self, packet: Packet, tail_ps: int) -> None:
        """Take the ACK of a write, whose last byte arrives at `tail_ps`."""
        request = self._requests[packet.transfer.tag]
        if request.times is not None and packet.train is not None:
            request.times.add(packet.train.times)
        self._engine.at(tail_ps, self._finish, request)

    def landed(self, data: FabricTransfer, landed_ps: int) -> None:
        """The DATA of a request has come; all of it is in TCM, or on its way on, at `landed_ps`."""
        request = self._requests[data.tag]
        if request.times is not None and data.train is not None:
            request.times.add(data.train.times)
        if request.rows is not None:
            if request.rows.landed(data, landed_ps):
                request.data = request.rows.data
                self._engine.at(request.rows.landed_ps, self._finish, request)
            return
        request.data = bytes(data.payload)
        if request.writing is None:
            self._engine.at(landed_ps, self._finish, request)

    def _left(self, transfer: FabricTransfer, left_ps: int) -> None:
        """The last byte of a transfer leaves TCM at `left_ps`; only a slot has no answer."""
        if transfer.kind is Kind.IPCQ_DATA:
            self._engine.at(left_ps, self._finish, self._requests[transfer.tag])

    def indexed(self, rows: Sequence[Operand], list_bytes: int) -> IndexedRead:
        """The READs of a gather, without their tag."""
        return IndexedRead(
            engine=self._engine,
            port=self._context.tcm.server,
            window=self._window,
            row_ps=self._gather_row_ps,
            list_bytes=list_bytes,
            reads=[self._transfer(Kind.READ, row) for row in rows],
        )

    def _transfer(self, kind: Kind, block: Operand, data: bytes = b"") -> FabricTransfer:
        """The transfer about a block on the far side of the fabric."""
        sip, node = self._context.locate(block.address)
        nbytes, rows = layout_of(block)
        return FabricTransfer(
            kind=kind,
            source_sip=self._sip,
            source_node=self._node,
            sip=sip,
            node=node,
            address=block.address,
            total=nbytes,
            payload=data,
            rows=rows,
        )

    def _enqueue(self, request: _DmaRequest) -> Completion[bytes]:
        tag = request.tag = self._tags = self._tags + 1
        for transfer in (request.writing, request.reading):
            if transfer is not None:
                transfer.tag, request.total = tag, transfer.total
        if request.rows is not None:
            request.total = request.rows.tagged(tag)
        self._requests[tag] = request
        request.requested_ps = self._engine.now_ps
        if self._context.log.recorder is not None:
            self._give_trains(request)
        if self._idle_channels:
            self._begin(request)
        else:
            self._waiting.append(request)
        return request.done

    def _give_trains(self, request: _DmaRequest) -> None:
        """What the packets of a request queue is added to its times."""
        times = request.times = QueueTimes()
        for transfer in (request.reading, request.writing):
            if transfer is not None:
                transfer.train = PacketTrain(times)
        if request.rows is not None:
            request.rows.give_trains(times)

    def _begin(self, request: _DmaRequest) -> None:
        """Give a request the channel that is idle."""
        self._idle_channels -= 1
        # Time in the queue is the requester's wait, not the engine's work.
        request.start_ps = now_ps = self._engine.now_ps
        begins_ps = now_ps + self._overhead_ps
        reading, writing = request.reading, request.writing
        if writing is not None:
            writing.sent_ps = now_ps
        if request.rows is not None:
            self._engine.at(begins_ps, request.rows.begin)
        elif reading is not None:
            reading.sent_ps = now_ps
            if writing is not None:
                self.landing.forward(writing)
            self._engine.at(begins_ps, self._window.begin, reading)
        elif writing is not None:
            self._engine.at(begins_ps, self._stream.start, writing, request.packet_bytes)

    def _finish(self, request: _DmaRequest) -> None:
        del self._requests[request.tag]
        now_ps, at, target = self._engine.now_ps, self._context.coordinates, request.target
        self.busy_ps += now_ps - request.start_ps
        self.nbytes += request.total
        if request.writing is None:
            self._tcm.write(target, request.data)
        record = OpRecord(
            engine="pe_dma",
            name=request.name,
            start_ps=request.start_ps,
            end_ps=now_ps,
            cube=at.cube,
            pe=at.pe,
            address=target.address,
            nbytes=request.total,
            shape=target.shape,
            dtype=target.dtype,
            flow=None if request.writing is None else request.writing.flow,
            inputs=request.inputs,
            strides=target.strides,
            checksum=crc32(request.data),
        )
        self._context.record(record, request.requested_ps, Cause.CHANNEL, request.times)
        # Reassign the channel before the requester continues: requests that wait are older than
        # its next one.
        self._idle_channels += 1
        if self._waiting:
            self._begin(self._waiting.popleft())
        request.done.complete(request.data)


class _RequestParts(NamedTuple):
    """What the twin makes requests of: kinds, classes and functions of rooms above it."""

    read: Kind = Kind.READ
    write: Kind = Kind.WRITE
    ipcq_data: Kind = Kind.IPCQ_DATA
    elements: Sequence[str] = ELEMENTS
    completion: type[Completion[bytes]] = Completion
    layout_of: Callable[[Operand], tuple[int, StridedBlock | None]] = layout_of
    direct_memory: Callable[[PeTcm], Memory | None] = direct_memory


if TYPE_CHECKING or not IS_COMPILED:
    PeDma = ReferencePeDma
else:
    from sip_node.compiled.dma_requests import DmaRequests

    class PeDma(DmaRequests, ReferencePeDma):
        """The reference, whose requests are in C."""

        def __init__(self, context: PeContext) -> None:
            super().__init__(context)
            self.bind(
                engine=self._engine,
                parts=_RequestParts(),
                context=context,
                window=self._window,
                stream=self._stream,
                landing=self.landing,
                overhead_ps=self._overhead_ps,
            )
