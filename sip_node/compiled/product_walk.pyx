"""The state of the matrix products of an LP between two events, read or moved by whole periods.

The walk comes to the stages and the DMA engine of each product, to the memories that it uses, then
to all events in calendar order. Events of something else end in `foreign_ps`, the time of the first
of them; what waits at a resource of a product for something else is refused with `NotClosed`.
"""

from sip_node.chip.fabric.packet cimport Packet
from sip_node.kernel.calendar cimport Calendar, Event, Key
from sip_node.chip.pe.read_window cimport DataLanding
from sip_node.chip.pe.dma cimport FINISHED, DmaRequest, PeDma
from sip_node.chip.fabric.egress_stream cimport Departure, EgressStream
from sip_node.chip.memory.memory_packets cimport (
    AtomicAccess,
    LeavingPiece,
    MemoryPackets,
    ReadAccess,
)
from sip_node.chip.pe.read_window cimport OpenRead, ReadWindow
from sip_node.compiled.state_walk cimport COUNT, TIME, StateVector
from sip_node.compiled.state_walk import NotClosed
from sip_node.chip.pe.compute.tile_token cimport StepTokens
from sip_node.chip.pe.compute.tile_dma cimport TileRead, TileWriteRequest
from sip_node.chip.pe.compute.fetch_store cimport FetchPort, StorePort
from sip_node.chip.pe.compute.gemm cimport PeGemm
from sip_node.kernel.calendar cimport ID_BITS, precedes
from sip_node.kernel.exact cimport NEVER_PS


cdef class ProductWalk(TransferWalk):
    """The state of the products of `pipelines`, whose events are in `calendar`."""

    def __init__(self, Calendar calendar not None, list pipelines not None):
        cdef Pipeline pipeline
        self.calendar, self.pipelines = calendar, pipelines
        self.parts, self.owners = {}, {}
        for pipeline in pipelines:
            if (pipeline.dma.sip, pipeline.dma.node) in self.owners:
                raise NotClosed("two products on one PE")
            self.owners[pipeline.dma.sip, pipeline.dma.node] = pipeline
            self.parts.update(pipeline.actors())

    def read(self):
        """The state now; raises `NotClosed`."""
        self.begin_to_read(self.calendar.now_ps, self.calendar.following)
        self.walk()
        return self.state

    def shift(self, StateVector first not None, StateVector second not None, long long periods):
        """Move the state by `periods` times the period from `first` to `second`."""
        self.begin_to_shift(first, second, periods)
        self.walk()
        self.calendar.following += periods * self.ids
        self.calendar.now_ps += periods * (second.now_ps - first.now_ps)
        assert self.place == second.values.size, "the state has changed since it was read"

    def bins(self):
        """The loads of the servers of all products over time, in a run with records."""
        by_object = {id(bins): bins for each in self.pipelines for bins in (<Pipeline> each).bins()}
        return list(by_object.values())

    cdef int walk(self) except -1:
        cdef Pipeline pipeline
        self.foreign_ps = NEVER_PS
        self.tokens, self.requests, self.transfers = [], [], []
        self.request_of, self.written = {}, set()
        self.now_ps = self.calendar.now_ps
        for pipeline in self.pipelines:
            self.stages(pipeline)
        # All requests first: transfers are compared by the request that they belong to.
        for pipeline in self.pipelines:
            self.engine(pipeline)
        for pipeline in self.pipelines:
            for memory in pipeline.memories:
                self.memory(memory)
        return self.events()

    cdef int slots(self, FreeList slots) except -1:
        cdef int index
        self.same(slots.filled)
        for index in range(slots.filled):
            self.same(slots.order[(slots.first + index) % slots.count])
        return 0

    cdef int stages(self, Pipeline pipeline) except -1:
        """The stages of a product, and the tokens that wait there."""
        cdef FetchPort fetch = pipeline.fetch
        cdef PeGemm gemm = pipeline.gemm
        cdef StorePort store = pipeline.store
        cdef StepTokens source = pipeline.source
        for server in pipeline.servers:
            self.server(server)
        for slots in pipeline.slots:
            self.slots(slots)
        for tokens in (pipeline.load.loading, fetch.waiting, gemm.waiting, store.waiting):
            self.same(len(tokens))
            for token in tokens:
                if (<TileToken> token).gemm is not source.gemm:
                    raise NotClosed("another product in the stages")
                self.token(<TileToken> token)
        self.same(fetch.is_busy | gemm.is_busy << 1 | store.is_busy << 2)
        if source.output is None or gemm.free_ps < source.submitted_ps:
            raise NotClosed("a product that has not begun")
        if -1 < fetch.open_ps < source.submitted_ps:
            raise NotClosed("a product that has just begun")
        fetch.open_ps = self.value(fetch.open_ps, TIME)
        fetch.turn_ps = self.value(fetch.turn_ps, TIME)
        fetch.records = self.value(fetch.records, COUNT)
        store.records = self.value(store.records, COUNT)
        gemm.free_ps = self.value(gemm.free_ps, TIME)
        gemm.requested_ps = self.value(gemm.requested_ps, TIME)
        self.same(gemm.waited_for)
        gemm.busy_ps = self.value(gemm.busy_ps, COUNT)
        gemm.tiles = self.value(gemm.tiles, COUNT)
        gemm.macs = self.value(gemm.macs, COUNT)
        gemm.stall_dma_ps = self.value(gemm.stall_dma_ps, COUNT)
        gemm.stall_fetch_ps = self.value(gemm.stall_fetch_ps, COUNT)
        gemm.stall_store_ps = self.value(gemm.stall_store_ps, COUNT)
        composite = pipeline.composite
        composite.tiles_to_come = self.value(composite.tiles_to_come, COUNT)
        self.value(source.index, COUNT)
        # The output tile of the next step.
        return self.output(source.output)

    cdef int token(self, TileToken token) except -1:
        if not self.enters(token):
            return 0
        self.tokens.append(token)
        if 0 < token.open_ps < token.submitted_ps:
            raise NotClosed("a product that has just begun")
        for value in (
            token.first, token.last, token.buffer, token.passed, token.loading, token.registers,
            token.a is None, token.b is None,
        ):
            self.same(value)
        self.same(<size_t> <void *> token.shape)
        token.index = self.value(token.index, COUNT)
        token.arrived_ps = self.value(token.arrived_ps, TIME)
        token.ready_ps = self.value(token.ready_ps, TIME)
        token.open_ps = self.value(token.open_ps, TIME)
        token.turn_ps = self.value(token.turn_ps, TIME)
        token.fetch_ps = self.value(token.fetch_ps, TIME)
        token.fetched_ps = self.value(token.fetched_ps, TIME)
        return self.output(token.output)

    cdef int output(self, OutputTile output) except -1:
        if self.enters(output):
            accumulator = output.accumulator
            for value in (
                -1 if accumulator is None else accumulator, output.address, output.buffer,
                output.array is None, output.sums is NULL,
            ):
                self.same(value)
        return 0

    cdef int engine(self, Pipeline pipeline) except -1:
        """The DMA engine of the PE, and its requests in their order."""
        cdef PeDma dma = pipeline.dma
        cdef ReadWindow window = dma.window
        cdef DataLanding landing = dma.landing
        cdef DmaRequest request
        cdef OpenRead reading
        if landing.writes:
            raise NotClosed("a copy past the TCM")
        dma.busy_ps = self.value(dma.busy_ps, COUNT)
        dma.nbytes = self.value(dma.nbytes, COUNT)
        dma.tags = self.value(dma.tags, COUNT)
        self.same(dma.idle_channels)
        self.same(len(dma.requests))
        for tag, each in dma.requests.items():
            self.request(<DmaRequest> each, (dma.sip, dma.node, tag), pipeline)
        self.same(len(dma.waiting))
        for request in dma.waiting:
            self.enters(request)
        self.same(len(landing.come))
        for transfer, come in landing.come.items():
            self.transfer(transfer)
            self.same(come)
        # Sorted, so that equal contents give equal vectors; a sorted list is a heap, too. What has
        # landed is a free place: without a READ that waits, the next one would count it first.
        window.landings.sort()
        while not window.reading and window.landings and window.landings[0] <= self.now_ps:
            window.landings.pop(0)
            window.free += 1
        self.same(window.free)
        self.same(len(window.landings))
        window.landings[:] = [self.value(each, TIME) for each in window.landings]
        window.wakes_ps = self.value(window.wakes_ps, TIME)
        self.same(len(window.reading))
        for reading in window.reading:
            self.same(reading.begin)
            self.transfer(reading.transfer)
        return 0

    cdef int request(self, DmaRequest request, key, Pipeline pipeline) except -1:
        cdef TileToken token
        self.enters(request)
        if isinstance(request, TileRead):
            token = (<TileRead> request).token
            self.same((<TileRead> request).operand)
            self.token(token)
        elif isinstance(request, TileWriteRequest):
            # Of its token only the buffer is used once more.
            token = (<TileWriteRequest> request).token
            self.same(2)
            self.same((<OutputTile> token.output).buffer)
        else:
            raise NotClosed("a request of a kernel")
        if token.gemm is not pipeline.source.gemm:
            raise NotClosed("another product at the DMA engine")
        self.requests.append((request, pipeline))
        self.request_of[key] = len(self.requests)
        self.same(request.total)
        self.same(len(request.data) > 0)
        request.start_ps = self.value(request.start_ps, TIME)
        request.requested_ps = self.value(request.requested_ps, TIME)
        self.times(request.times)
        self.transfer(request.reading if request.writing is None else request.writing)
        return 0

    cdef int events(self) except -1:
        """The events of the products in calendar order, and the counts of their fabric."""
        cdef Calendar calendar = self.calendar
        cdef Key *keys = calendar.heap
        cdef Key key
        cdef Event *event
        cdef Py_ssize_t index, place
        # In order, in place: a sorted array is a heap.
        for index in range(1, calendar.size):
            key, place = keys[index], index
            while place and precedes(key, keys[place - 1]):
                keys[place] = keys[place - 1]
                place -= 1
            keys[place] = key
        if calendar.simpy_queue:
            self.foreign_ps = calendar.simpy_queue[0][0]
        for index in range(calendar.size):
            event = &calendar.values[keys[index].slot]
            if self.is_own(event, calendar.subjects[keys[index].slot]):
                self.event(&keys[index])
            else:
                self.foreign_ps = min(self.foreign_ps, keys[index].time_ps)
        for pipeline in self.pipelines:
            self.fabric((<Pipeline> pipeline).fabric)
        return 0

    cdef int fabric(self, Hops fabric) except -1:
        if self.enters(fabric):
            fabric.sent = self.value(fabric.sent, COUNT)
            fabric.delivered = self.value(fabric.delivered, COUNT)
        return 0

    cdef bint is_own(self, Event *event, object subject) except -1:
        """Whether an event belongs to a product; one of a kernel at its DMA engine is refused."""
        part = self.parts.get(event.actor)
        if part is None:
            return False
        if isinstance(part, Hops):
            return self.owns((<Packet> subject).transfer)
        if isinstance(part, MemoryPackets):
            return self.owns(transfer_of(subject))
        return True

    cdef int event(self, Key *key) except -1:
        cdef Calendar calendar = self.calendar
        cdef Event *event = &calendar.values[key.slot]
        cdef long long following = calendar.following
        subject = calendar.subjects[key.slot]
        key.time_ps = self.value(key.time_ps, TIME)
        # Ids count from the next one, so equal states have events of equal rank.
        self.same(following - <long long> (key.order & ((1ULL << ID_BITS) - 1)))
        self.same(key.order >> ID_BITS)
        if self.second is not None:
            key.order += self.periods * self.ids
        self.same(event.actor)
        return self.subject(event, self.parts[event.actor], subject)

    cdef int subject(self, Event *event, object part, object subject) except -1:
        """The subject with which an event of a part continues."""
        cdef PeDma dma
        cdef Departure departure
        cdef FetchPort fetch
        cdef PeGemm gemm
        cdef StorePort store
        cdef LeavingPiece piece
        cdef int index
        if isinstance(part, Hops):
            self.same(event.step)
            self.same(<size_t> event.context)
            event.tail_ps = self.value(event.tail_ps, TIME)
            self.packet(<Packet> subject)
        elif isinstance(part, PeGemm):
            gemm = <PeGemm> part
            gemm.start_ps = self.value(gemm.start_ps, TIME)
            self.token(<TileToken> subject)
        elif isinstance(part, StorePort):
            store = <StorePort> part
            store.start_ps = self.value(store.start_ps, TIME)
            self.token(<TileToken> subject)
        elif isinstance(part, FetchPort):
            fetch = <FetchPort> part
            self.token(<TileToken> subject)
            for index in range(fetch.fetches):
                fetch.starts_ps.values[index] = self.value(fetch.starts_ps.values[index], TIME)
                fetch.ends_ps.values[index] = self.value(fetch.ends_ps.values[index], TIME)
        elif isinstance(part, PeDma):
            self.same(event.step)
            self.enters(subject)
            if event.step == FINISHED:
                dma = <PeDma> part
                self.written.add(
                    self.request_of[dma.sip, dma.node, (<DmaRequest> subject).tag] - 1
                )
        elif isinstance(part, EgressStream):
            departure = <Departure> subject
            for value in (departure.packet_bytes, departure.begin, departure.nbytes):
                self.same(value)
            departure.left_ps = self.value(departure.left_ps, TIME)
            self.transfer(departure.transfer)
        elif isinstance(part, MemoryPackets):
            self.same(event.step)
            if isinstance(subject, Packet):
                self.packet(<Packet> subject)
            elif isinstance(subject, ReadAccess):
                self.access(<ReadAccess> subject)
            elif isinstance(subject, LeavingPiece):
                piece = <LeavingPiece> subject
                self.same(piece.begin)
                self.same(piece.size)
                piece.tail_ps = self.value(piece.tail_ps, TIME)
                self.answer(piece.answer)
            else:
                self.transfer(subject)
        # The queue of a memory and the window have no subject.
        return 0


cdef object transfer_of(subject):
    """The transfer that an event of a memory is about."""
    if isinstance(subject, Packet):
        return (<Packet> subject).transfer
    if isinstance(subject, ReadAccess):
        return (<ReadAccess> subject).request.transfer
    if isinstance(subject, LeavingPiece):
        return (<LeavingPiece> subject).answer.data
    if isinstance(subject, AtomicAccess):
        # Of no product: an event of others, up to which a period may be computed.
        return (<AtomicAccess> subject).packet.transfer
    return subject
