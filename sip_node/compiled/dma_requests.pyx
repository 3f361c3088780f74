"""The requests of a DMA engine in C; see `sip_node.chip.pe.dma`.

A request is one object from its start to its record. The parts of the engine that handle packets
call back once for each transfer, and its bytes, its record and its completion are of Python.
"""

from collections import deque

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from sip_node.chip.fabric.packet cimport new_transfer
from sip_node.compiled.calendar cimport Actor, Calendar, Event
from sip_node.compiled.checksum cimport crc32_of
from sip_node.compiled.operation cimport FOR_CHANNEL, Operation
from sip_node.chip.fabric.packet_train cimport QueueTimes, new_train

cdef enum:
    NORMAL = 1


cdef str LOAD = "load", STORE = "store"


cdef enum Step:
    READ_BEGINS
    ROWS_BEGIN
    WRITE_BEGINS
    FINISHED


cdef class DmaRequest:
    """One request: see the reference. A class in C that derives from it has another `complete`."""

    cdef int complete(self) except -1:
        """Its bytes are there, and it has left its channel."""
        self.done.complete(self.data)
        return 0


cdef class DmaRequests(Actor):
    """The first base of an engine whose second base is `ReferencePeDma`."""

    def bind(self, Calendar engine not None, parts, context, ReadWindow window not None,
             EgressStream stream not None, landing, long long overhead_ps):
        """Take what the reference holds; `parts` are the classes that requests are made of."""
        self.calendar, self.number = engine, engine.enlist(self)
        self.parts, self.kind_read, self.overhead_ps = parts, parts.read, overhead_ps
        self.window, self.stream, self.landing_part = window, stream, landing
        self.locate, self.log, self.tcm = context.locate, context.log, context.tcm
        self.next_flow, self.records = context.next_flow, self.log.recorder is not None
        self.tcm_memory, self.tcm_base = parts.direct_memory(self.tcm), self.tcm.base
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
        self.enqueue(request)
        return request.done

    def gather(self, rows, target, list_bytes, indices):
        """See `ReferencePeDma.gather`."""
        cdef DmaRequest request = self.request("gather", None, target)
        request.inputs = (*rows, *(() if indices is None else (indices,)))
        request.rows = self.indexed(rows, list_bytes)
        request.total = request.rows.tagged(request.tag)
        self.enqueue(request)
        return request.done

    def write(self, source, target, data, name="store"):
        """See `ReferencePeDma.write`."""
        cdef DmaRequest request = self.request(name, source, target)
        request.data = data
        request.writing = self.transfer(self.parts.write, target, data, request)
        self.enqueue(request)
        return request.done

    def copy(self, source, target, name):
        """See `ReferencePeDma.copy`."""
        cdef DmaRequest request = self.request(name, source, target)
        request.reading = self.transfer(self.parts.read, source, b"", request)
        request.writing = self.transfer(self.parts.write, target, b"", request)
        # The record has the bytes of the READ.
        request.total = request.reading.total
        self.enqueue(request)
        return request.done

    def push(self, source, target, data, long long packet_bytes, call=""):
        """See `ReferencePeDma.push`."""
        cdef DmaRequest request = self.request("ipcq_send", source, target)
        request.data, request.packet_bytes = data, packet_bytes
        slot = request.writing = self.transfer(self.parts.ipcq_data, target, data, request)
        slot.element, slot.call = self.parts.elements.index(source.dtype), call
        # Numbered here and not when the channel is free: see the reference.
        if slot.sip != self.sip:
            slot.flow = self.next_flow(slot.sip)
        self.enqueue(request)
        return request.done

    def acknowledged(self, packet, long long tail_ps):
        """See `ReferencePeDma.acknowledged`."""
        cdef DmaRequest request = <DmaRequest> self.requests[packet.transfer.tag]
        if request.times is not None:
            request.times.add(packet.train.times)
        self.after(tail_ps, FINISHED, request)

    def landed(self, FabricTransfer data not None, long long landed_ps):
        """See `ReferencePeDma.landed`."""
        self.land(data, landed_ps)

    cdef int land(self, FabricTransfer data, long long landed_ps) except -1:
        """`landed` for C classes."""
        cdef DmaRequest request = <DmaRequest> self.requests[data.tag]
        if request.times is not None:
            request.times.add(data.train.times)
        if request.rows is not None:
            return self.land_row(request, data, landed_ps)
        request.data = bytes(data.payload)
        if request.writing is None:
            return self.after(landed_ps, FINISHED, request)
        return 0

    cdef int land_row(self, DmaRequest request, FabricTransfer data, long long landed_ps) except -1:
        """DATA of a gather has come."""
        if not request.rows.landed(data, landed_ps):
            return 0
        request.data = request.rows.data
        return self.after(request.rows.landed_ps, FINISHED, request)

    def _left(self, FabricTransfer transfer not None, long long left_ps):
        if transfer.kind is self.parts.ipcq_data:
            self.after(left_ps, FINISHED, self.requests[transfer.tag])

    cdef int act(self, Event event, object subject) except -1:
        cdef DmaRequest request = <DmaRequest> subject
        if event.step == FINISHED:
            return self.finish(request)
        if event.step == ROWS_BEGIN:
            request.rows.begin()
            return 0
        if event.step == READ_BEGINS:
            self.window.begin(request.reading, None)
            return 0
        self.stream.start(request.writing, request.packet_bytes)
        return 0

    cdef int after(self, long long time_ps, int step, object subject) except -1:
        """Continue with a step at a time."""
        cdef Event event
        event.actor, event.step = self.number, step
        return self.calendar.insert(time_ps, NORMAL, event, subject)

    cdef DmaRequest request(self, object name, object source, object target):
        cdef DmaRequest request = DmaRequest.__new__(DmaRequest)
        request.name, request.inputs, request.target = name, (source,), target
        request.data, request.packet_bytes = b"", self.packet_bytes
        request.done = self.parts.completion()
        # A block that no descriptor holds raises before it is counted.
        request.tag = self.tags + 1
        return request

    cdef FabricTransfer transfer(self, object kind, object block, object data, DmaRequest request):
        """The transfer about a block on the far side of the fabric."""
        sip, node = self.locate(block.address)
        total, rows = self.parts.layout_of(block)
        request.total = total
        return self.new_transfer(kind, sip, node, block.address, request, data, rows)

    cdef FabricTransfer new_transfer(
        self, object kind, int sip, int node, long long address, DmaRequest request, object data,
        object rows
    ):
        cdef FabricTransfer transfer = new_transfer(kind, self.sip, self.node, sip, node)
        transfer.address, transfer.tag, transfer.total = address, request.tag, request.total
        transfer.payload, transfer.rows = data, rows
        return transfer

    cdef int read_from(
        self, DmaRequest request, int sip, int node, long long address, object rows
    ) except -1:
        """Begin the READ of a block whose memory and layout are known: `read` for C classes.

        The caller has set the inputs, the target and the bytes of the request.
        """
        request.name, request.data, request.packet_bytes = LOAD, b"", self.packet_bytes
        request.tag = self.tags + 1
        request.reading = self.new_transfer(
            self.kind_read, sip, node, address, request, b"", rows
        )
        return self.enqueue(request)

    cdef int write_to(self, DmaRequest request) except -1:
        """Begin to write the bytes of a request to its target: `write` for C classes."""
        request.name, request.packet_bytes, request.tag = STORE, self.packet_bytes, self.tags + 1
        request.writing = self.transfer(self.parts.write, request.target, request.data, request)
        return self.enqueue(request)

    cdef int enqueue(self, DmaRequest request) except -1:
        self.tags += 1
        self.requests[request.tag] = request
        request.requested_ps = self.calendar.now_ps
        if self.records:
            self.give_trains(request)
        if self.idle_channels:
            return self.begin(request)
        self.waiting.append(request)
        return 0

    cdef int give_trains(self, DmaRequest request) except -1:
        """See `ReferencePeDma._give_trains`."""
        request.times = QueueTimes.__new__(QueueTimes)
        if request.reading is not None:
            request.reading.train = new_train(request.times)
        if request.writing is not None:
            request.writing.train = new_train(request.times)
        if request.rows is not None:
            request.rows.give_trains(request.times)
        return 0

    cdef int begin(self, DmaRequest request) except -1:
        """Give a request the channel that is idle."""
        cdef long long now_ps = self.calendar.now_ps
        self.idle_channels -= 1
        # Time in the queue is the requester's wait, not the engine's work.
        request.start_ps = now_ps
        if request.writing is not None:
            request.writing.sent_ps = now_ps
        if request.rows is not None:
            return self.after(now_ps + self.overhead_ps, ROWS_BEGIN, request)
        if request.reading is None:
            return self.after(now_ps + self.overhead_ps, WRITE_BEGINS, request)
        request.reading.sent_ps = now_ps
        if request.writing is not None:
            self.landing_part.forward(request.writing)
        return self.after(now_ps + self.overhead_ps, READ_BEGINS, request)

    cdef int finish(self, DmaRequest request) except -1:
        cdef long long now_ps = self.calendar.now_ps
        cdef FabricTransfer writing = request.writing
        cdef Operation about
        target = request.target
        del self.requests[request.tag]
        self.busy_ps += now_ps - request.start_ps
        self.nbytes += request.total
        if writing is None and self.tcm_memory is not None and not target.strides:
            if request.data:
                self.tcm_memory.write(target.address - self.tcm_base, request.data)
        elif writing is None:
            self.tcm.write(target, request.data)
        request.checksum = crc32_of(
            PyBytes_AS_STRING(request.data), PyBytes_GET_SIZE(request.data)
        )
        about.start_ps, about.end_ps = request.start_ps, now_ps
        about.cube, about.pe, about.flow_end = self.cube, self.pe, False
        about.address, about.nbytes = target.address, request.total
        about.checksum = request.checksum
        about.requested_ps, about.waited_for = request.requested_ps, FOR_CHANNEL
        self.log.enter(
            "pe_dma", request.name, &about, target.shape, target.dtype, target.strides,
            request.inputs, None if writing is None else writing.flow, None, request.times,
        )
        # Reassign the channel before the requester continues: requests that wait are older than
        # its next one.
        self.idle_channels += 1
        if self.waiting:
            self.begin(<DmaRequest> self.waiting.popleft())
        return request.complete()
