"""The packets of transfers to and from a memory in C; see `sip_node.chip.memory.memory_packets`.

An access in C has the state of its packet: `begin_service`, which the service of the memory calls,
continues with it. A packet of a READ has one access, which is submitted again for each piece.
"""

from sip_node.compiled.calendar cimport Calendar, Event
from sip_node.compiled.hops cimport Endpoint
from sip_node.compiled.memory_queue cimport Access, AccessService
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet, new_packet
from sip_node.chip.fabric.packet_train cimport new_train
from sip_node.compiled.ports cimport Outlet

cdef enum:
    NORMAL = 1
    # `Kind.READ`.
    READ = 2


cdef enum Step:
    # What an event continues with; its subject is a packet, an access, a transfer or a piece.
    READ_ARRIVED
    STORED
    NEXT_PIECE
    LOAD
    SEND


cdef class TransferStore:
    """A memory that stores and loads whole transfers: in C, or an object in Python that does."""

    def __init__(self, in_python):
        self.in_python, self.keeps_data = in_python, in_python.keeps_data

    cdef int store(self, Packet packet) except -1:
        """`written` of the reference."""
        self.in_python.written(packet)
        return 0

    cdef FabricTransfer answer_to(self, FabricTransfer request):
        """`answer` of the reference."""
        return self.in_python.answer(request)

    cdef int load(self, FabricTransfer data) except -1:
        """`load` of the reference."""
        self.in_python.load(data)
        return 0


cdef class Storing:
    """A transfer that is being written."""


cdef class WriteAccess(Access):
    """The access of a packet that is written."""

    cdef int begin_service(
        self, long long first_ps, long long start_ps, long long end_ps
    ) except -1:
        return self.memory.writes(self.packet, self.storing, end_ps)


cdef class Answer:
    """The DATA of a READ."""


cdef class ReadAccess(Access):
    """The access of a packet of a READ, of one piece after the other."""

    cdef int begin_service(
        self, long long first_ps, long long start_ps, long long end_ps
    ) except -1:
        return self.memory.reads(self, first_ps, start_ps, end_ps)


cdef class Piece:
    """A packet of DATA that leaves."""


cdef class MemoryPackets(Endpoint):
    """The twin of `ReferenceMemoryPackets`."""

    def __init__(self, Calendar engine not None, fabric, int node, long long base, service,
                 long long packet_bytes, long long latency_ps, store):
        self.calendar, self.number = engine, engine.enlist(self)
        self.outlet, self.base = Outlet(fabric, node), base
        self.store = store if isinstance(store, TransferStore) else TransferStore(store)
        self.packet_bytes, self.latency_ps = packet_bytes, latency_ps
        if isinstance(service, AccessService) and type(service).submit is AccessService.submit:
            self.service = service
        else:
            self.service_in_python = service
        self.storing, self.answers = {}, {}

    cdef int take(self, Packet packet, long long tail_ps) except -1:
        """Serve a packet whose head has arrived and whose tail arrives at `tail_ps`."""
        cdef WriteAccess access
        cdef Storing storing
        cdef int kind = packet.transfer.kind
        if kind == READ:
            # Not cut-through: the descriptor must be complete before the memory can use it.
            return self.after(tail_ps, READ_ARRIVED, packet)
        storing = self.storing_of(packet)
        storing.waiting += 1
        access = WriteAccess.__new__(WriteAccess)
        access.message, access.rows = storing.message, storing.rows
        access.offset = storing.offset + (packet.begin if storing.rows is None else 0)
        access.nbytes, access.begin = packet.size, packet.begin
        access.arrived_ps, access.tail_ps = self.calendar.now_ps, tail_ps
        access.writes, access.train = True, packet.train
        access.memory, access.packet, access.storing = self, packet, storing
        return self.submit(access)

    cdef int act(self, Event event, object subject) except -1:
        if event.step == READ_ARRIVED:
            return self.read(<Packet> subject)
        if event.step == NEXT_PIECE:
            return self.submit_piece(<ReadAccess> subject)
        if event.step == SEND:
            return self.send(<Piece> subject)
        if event.step == STORED:
            return self.store.store(<Packet> subject)
        return self.store.load(<FabricTransfer> subject)

    cdef int after(self, long long time_ps, int step, object subject) except -1:
        """Continue with a step at a time."""
        cdef Event event
        event.actor, event.step = self.number, step
        return self.calendar.insert(time_ps, NORMAL, event, subject)

    cdef int submit(self, Access access) except -1:
        if self.service is not None:
            return self.service.take(access)
        access.begun = access.service_begins
        self.service_in_python.submit(access)
        return 0

    cdef Storing storing_of(self, Packet packet):
        """The state of the transfer that a packet belongs to."""
        cdef Storing storing
        cdef FabricTransfer transfer = packet.transfer
        found = self.storing.get(transfer)
        if found is None:
            storing = Storing.__new__(Storing)
            storing.message = (transfer.source_sip, transfer.source_node, transfer.tag)
            storing.offset, storing.rows = transfer.address - self.base, transfer.rows
            if not packet.last:
                self.storing[transfer] = storing
        else:
            storing = <Storing> found
        if packet.last:
            storing.last = packet
        return storing

    cdef int writes(self, Packet packet, Storing storing, long long done_ps) except -1:
        """The service of a packet has begun; it is written at `done_ps`."""
        if self.on_service is not None:
            self.on_service(packet)
        storing.waiting -= 1
        # Packets of a transfer lie on different channels: the last one to arrive need not be the
        # last one written.
        storing.written_ps = max(storing.written_ps, done_ps)
        if storing.last is None or storing.waiting:
            return 0
        self.storing.pop(packet.transfer, None)
        return self.after(storing.written_ps, STORED, storing.last)

    cdef int read(self, Packet request) except -1:
        """A packet of a READ is complete."""
        cdef Answer answer
        cdef ReadAccess access
        cdef FabricTransfer transfer = request.transfer
        found = self.answers.get(transfer)
        if found is None:
            answer = self.answers[transfer] = Answer.__new__(Answer)
            answer.data, answer.total = self.store.answer_to(transfer), transfer.total
            if request.train is not None:
                answer.data.train = new_train(request.train.times)
        else:
            answer = <Answer> found
        access = ReadAccess.__new__(ReadAccess)
        access.message = (transfer.source_sip, transfer.source_node, transfer.tag)
        access.rows, access.address_offset = transfer.rows, transfer.address - self.base
        access.memory, access.request, access.answer = self, request, answer
        access.arrived_ps = access.tail_ps = access.left_ps = self.calendar.now_ps
        access.begin, access.train = request.begin, request.train
        access.end = answer.total if request.last else request.begin + self.packet_bytes
        return self.submit_piece(access)

    cdef int submit_piece(self, ReadAccess access) except -1:
        """Submit the next access of a READ."""
        access.offset = access.address_offset + (access.begin if access.rows is None else 0)
        access.nbytes = min(self.packet_bytes, access.end - access.begin)
        return self.submit(access)

    cdef int reads(
        self, ReadAccess access, long long first_ps, long long start_ps, long long done_ps
    ) except -1:
        """A piece leaves the latency after its service begins on all channels."""
        cdef Answer answer = access.answer
        cdef Piece piece
        if self.on_service is not None and access.begin == access.request.begin:
            self.on_service(access.request)
        # The channels of a short piece may be free before those of the piece before it. It waits,
        # so that the pieces of a packet leave in order.
        access.left_ps = max(access.left_ps, start_ps)
        answer.begun_bytes += access.nbytes
        answer.loaded_ps = max(answer.loaded_ps, access.left_ps)
        if answer.begun_bytes == answer.total:
            del self.answers[access.request.transfer]
            if self.store.keeps_data:
                # The bytes as of their service: a write that is complete by then is visible.
                self.after(answer.loaded_ps, LOAD, answer.data)
        piece = Piece.__new__(Piece)
        piece.answer, piece.begin, piece.size = answer, access.begin, access.nbytes
        piece.tail_ps = max(done_ps, access.left_ps) + self.latency_ps
        self.after(access.left_ps + self.latency_ps, SEND, piece)
        access.begin += access.nbytes
        if access.begin == access.end:
            return 0
        # One piece of a READ at a time: between two of them, others have their turn.
        if first_ps > self.calendar.now_ps:
            return self.after(first_ps, NEXT_PIECE, access)
        return self.submit_piece(access)

    cdef int send(self, Piece piece) except -1:
        cdef Answer answer = piece.answer
        answer.sent += piece.size
        return self.outlet.send(
            new_packet(answer.data, piece.begin, piece.size, answer.sent == answer.total),
            piece.tail_ps,
        )
