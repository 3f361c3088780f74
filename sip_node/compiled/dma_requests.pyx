"""The requests of a DMA engine in C; see `sip_node.chip.pe.dma`.

A request is one object from its start to its record. The parts of the engine that handle packets
call back once for each transfer, and its bytes, its record and its completion are of Python.
"""

from collections import deque
from zlib import crc32

from runtime.core.trace import OpRecord
from sip_node.compiled.calendar cimport Actor, Calendar, Event

cdef enum:
    NORMAL = 1


cdef enum Step:
    READ_BEGINS
    WRITE_BEGINS
    FINISHED


cdef class DmaRequest:
    """One request: see the reference."""


cdef class DmaRequests(Actor):
    """The first base of an engine whose second base is `ReferencePeDma`."""

    def bind(self, Calendar engine not None, parts, context, window, stream, landing,
             long long overhead_ps):
        """Take what the reference holds; `parts` are the classes that requests are made of."""
        self.calendar, self.number = engine, engine.enlist(self)
        self.parts, self.overhead_ps = parts, overhead_ps
        self.window, self.stream, self.landing_part = window, stream, landing
        self.locate, self.record, self.tcm = context.locate, context.record, context.tcm
        self.next_flow = context.next_flow
        at, topology = context.coordinates, context.topology
        self.sip, self.node, self.cube, self.pe = at.sip, context.node, at.cube, at.pe
        self.packet_bytes = topology.packet_bytes
        self.idle_channels = topology.pe.dma.channels
        self.waiting, self.requests = deque(), {}

    @property
    def in_flight(self):
        """The number of requests that have not completed."""
        return len(self.requests)

    def read(self, source, target, name="load"):
        """See `ReferencePeDma.read`."""
        cdef DmaRequest request = self.request(name, source, target)
        request.reading = self.transfer(self.parts.read, source, b"", request)
        return self.enqueue(request)

    def write(self, source, target, data, name="store"):
        """See `ReferencePeDma.write`."""
        cdef DmaRequest request = self.request(name, source, target)
        request.data = data
        request.writing = self.transfer(self.parts.write, target, data, request)
        return self.enqueue(request)

    def copy(self, source, target, name):
        """See `ReferencePeDma.copy`."""
        cdef DmaRequest request = self.request(name, source, target)
        request.reading = self.transfer(self.parts.read, source, b"", request)
        request.writing = self.transfer(self.parts.write, target, b"", request)
        # The record has the bytes of the READ.
        request.total = request.reading.total
        return self.enqueue(request)

    def push(self, source, target, data, long long packet_bytes, call=""):
        """See `ReferencePeDma.push`."""
        cdef DmaRequest request = self.request("ipcq_send", source, target)
        request.data, request.packet_bytes = data, packet_bytes
        slot = request.writing = self.transfer(self.parts.ipcq_data, target, data, request)
        slot.element, slot.call = self.parts.elements.index(source.dtype), call
        # Numbered here and not when the channel is free: see the reference.
        if slot.sip != self.sip:
            slot.flow = self.next_flow(slot.sip)
        return self.enqueue(request)

    def acknowledged(self, packet, long long tail_ps):
        """See `ReferencePeDma.acknowledged`."""
        self.after(tail_ps, FINISHED, self.requests[packet.transfer.tag])

    def landed(self, data, long long landed_ps):
        """See `ReferencePeDma.landed`."""
        cdef DmaRequest request = self.requests[data.tag]
        request.data = bytes(data.payload)
        if request.writing is None:
            self.after(landed_ps, FINISHED, request)

    def _left(self, transfer, long long left_ps):
        if transfer.kind is self.parts.ipcq_data:
            self.after(left_ps, FINISHED, self.requests[transfer.tag])

    cdef int act(self, Event event, object subject) except -1:
        cdef DmaRequest request = <DmaRequest> subject
        if event.step == FINISHED:
            return self.finish(request)
        if event.step == READ_BEGINS:
            self.window.begin(request.reading)
        else:
            self.stream.start(request.writing, request.packet_bytes)
        return 0

    cdef int after(self, long long time_ps, int step, object subject) except -1:
        """Continue with a step at a time."""
        cdef Event event
        event.actor, event.step = self.number, step
        return self.calendar.insert(time_ps, NORMAL, event, subject)

    cdef DmaRequest request(self, object name, object source, object target):
        cdef DmaRequest request = DmaRequest.__new__(DmaRequest)
        request.name, request.source, request.target = name, source, target
        request.data, request.packet_bytes = b"", self.packet_bytes
        request.done = self.parts.completion()
        # A block that no descriptor holds raises before it is counted.
        request.tag = self.tags + 1
        return request

    cdef object transfer(self, object kind, object block, object data, DmaRequest request):
        """The transfer about a block on the far side of the fabric."""
        sip, node = self.locate(block.address)
        request.total, rows = self.parts.layout_of(block)
        return self.parts.transfer(
            kind=kind,
            source_sip=self.sip,
            source_node=self.node,
            sip=sip,
            node=node,
            address=block.address,
            tag=request.tag,
            total=request.total,
            payload=data,
            rows=rows,
        )

    cdef object enqueue(self, DmaRequest request):
        self.tags += 1
        self.requests[request.tag] = request
        if self.idle_channels:
            self.begin(request)
        else:
            self.waiting.append(request)
        return request.done

    cdef int begin(self, DmaRequest request) except -1:
        """Give a request the channel that is idle."""
        cdef long long now_ps = self.calendar.now_ps
        self.idle_channels -= 1
        # Time in the queue is the requester's wait, not the engine's work.
        request.start_ps = now_ps
        if request.writing is not None:
            request.writing.sent_ps = now_ps
        if request.reading is None:
            return self.after(now_ps + self.overhead_ps, WRITE_BEGINS, request)
        request.reading.sent_ps = now_ps
        if request.writing is not None:
            self.landing_part.forward(request.writing)
        return self.after(now_ps + self.overhead_ps, READ_BEGINS, request)

    cdef int finish(self, DmaRequest request) except -1:
        cdef long long now_ps = self.calendar.now_ps
        target, writing = request.target, request.writing
        del self.requests[request.tag]
        self.busy_ps += now_ps - request.start_ps
        self.nbytes += request.total
        if writing is None:
            self.tcm.write(target, request.data)
        self.record(
            # By position: by keyword takes twice as long.
            OpRecord(
                "pe_dma", request.name, request.start_ps, now_ps, self.cube, self.pe,
                target.address, request.total, target.shape, target.dtype,
                None if writing is None else writing.flow, False, (request.source,),
                target.strides, None, crc32(request.data),
            )
        )
        # Reassign the channel before the requester continues: requests that wait are older than
        # its next one.
        self.idle_channels += 1
        if self.waiting:
            self.begin(<DmaRequest> self.waiting.popleft())
        request.done.complete(request.data)
        return 0
