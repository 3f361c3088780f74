"""The state of transfers in flight: their packets, and the accesses to the memories they reach."""

from sip_node.chip.memory.memory_packets cimport ReadAccess, WriteAccess
from sip_node.chip.memory.hbm cimport PseudoChannels, StripedShares
from sip_node.chip.memory.transaction_queue cimport MessageQueue, WaitingAccess
from sip_node.compiled.state_walk cimport FREE, TIME
from sip_node.compiled.state_walk import NotClosed

cdef enum:
    # `Kind` of transfers; see `sip_node.chip.fabric.packet`.
    WRITE = 1
    READ = 2
    ACK = 3


cdef class TransferWalk(StateWalk):
    """A walk that has the requests which transfers belong to."""

    cdef bint owns(self, FabricTransfer transfer) except -1:
        """Whether a transfer is of a request of a product, or its answer."""
        if transfer.kind == READ or transfer.kind == WRITE:
            return (transfer.source_sip, transfer.source_node) in self.owners
        return (transfer.sip, transfer.node) in self.owners

    cdef int transfer(self, FabricTransfer transfer) except -1:
        if not self.enters(transfer):
            return 0
        kind = transfer.kind
        if kind == READ or kind == WRITE:
            key = (transfer.source_sip, transfer.source_node, transfer.tag)
        else:
            key = (transfer.sip, transfer.node, transfer.tag)
        number = self.request_of.get(key)
        if number is None:
            raise NotClosed("a transfer of a kernel")
        self.transfers.append((transfer, number - 1))
        if kind == ACK:
            self.written.add(number - 1)
        for value in (kind, number, transfer.total, len(transfer.payload) > 0):
            self.same(value)
        transfer.sent_ps = self.value(transfer.sent_ps, TIME)
        return self.train(transfer.train)

    cdef int times(self, QueueTimes times) except -1:
        """The queueing times of the packets of a request, in a run with records."""
        if times is not None and self.enters(times):
            self.same(times.link_ps)
            self.same(times.memory_ps)
        return 0

    cdef int train(self, PacketTrain train) except -1:
        cdef int index
        if train is None or not self.enters(train):
            return 0
        self.times(train.times)
        self.same(train.stages)
        self.same(train.count)
        for index in range(train.stages):
            train.links[index] = self.value(train.links[index], FREE)
        for index in range(train.count):
            train.channels[index] = self.value(train.channels[index], FREE)
        train.port_ps = self.value(train.port_ps, FREE)
        return 0

    cdef int packet(self, Packet packet) except -1:
        if self.enters(packet):
            for value in (packet.begin, packet.size, packet.last, packet.entrance_ps):
                self.same(value)
            self.transfer(packet.transfer)
            self.same(packet.link_ps)
            self.same(packet.longest_ps)
            self.train(packet.train)
        return 0

    cdef int memory(self, MemoryPackets memory) except -1:
        """The transfers to and from a memory; those of others have events of others."""
        if not self.enters(memory):
            return 0
        for transfer, storing in memory.storing.items():
            if self.owns(<FabricTransfer> transfer):
                self.transfer(<FabricTransfer> transfer)
                self.storing(<Storing> storing)
        for transfer, answer in memory.answers.items():
            if self.owns(<FabricTransfer> transfer):
                self.transfer(<FabricTransfer> transfer)
                self.answer(<Answer> answer)
        return self.queue(<AccessQueue> memory.service)

    cdef int queue(self, AccessQueue queue) except -1:
        cdef PseudoChannels channels = queue.channels
        cdef StripedShares shares
        cdef MessageQueue message
        cdef WaitingAccess waiting
        cdef int index
        if queue.is_held:
            raise NotClosed("a memory that is held")
        queue.wake_ps = self.value(queue.wake_ps, TIME)
        for index in range(channels.count):
            self.same(channels.wrote.values[index])
        self.same(len(queue.waiting))
        for waiting in queue.waiting:
            self.access(waiting.access)
            waiting.place_ps = self.value(waiting.place_ps, TIME)
            shares = waiting.shares
            self.same(shares.needed.size)
            for index in range(shares.needed.size):
                self.same(shares.needed.values[index])
                self.same(shares.nbytes.values[index])
        for key, each in queue._messages.items():
            message = <MessageQueue> each
            # Of others only the end of the last packet is left: it gives no place to a new one.
            if not message.waits and message.end_ps <= self.now_ps:
                continue
            if key not in self.request_of:
                raise NotClosed("a message of others in a memory")
            self.same(self.request_of[key])
            self.same(message.waits)
            message.end_ps = self.value(message.end_ps, TIME)
            self.same(len(message.later) if message.later is not None else 0)
            if message.later is not None:
                for access in message.later:
                    self.access(<Access> access)
        return 0

    cdef int access(self, Access access) except -1:
        cdef ReadAccess reading
        cdef WriteAccess writing
        if not self.enters(access):
            return 0
        self.same(access.nbytes)
        self.same(access.begin)
        access.arrived_ps = self.value(access.arrived_ps, TIME)
        access.tail_ps = self.value(access.tail_ps, TIME)
        access.submitted_ps = self.value(access.submitted_ps, TIME)
        if isinstance(access, ReadAccess):
            reading = <ReadAccess> access
            self.same(reading.end)
            reading.left_ps = self.value(reading.left_ps, TIME)
            self.packet(reading.request)
            return self.answer(reading.answer)
        if not isinstance(access, WriteAccess):
            raise NotClosed("an access in Python")
        writing = <WriteAccess> access
        self.packet(writing.packet)
        return self.storing(writing.storing)

    cdef int answer(self, Answer answer) except -1:
        if self.enters(answer):
            for value in (answer.data.total, answer.begun_bytes, answer.sent):
                self.same(value)
            answer.loaded_ps = self.value(answer.loaded_ps, TIME)
            self.transfer(answer.data)
        return 0

    cdef int storing(self, Storing storing) except -1:
        if self.enters(storing):
            self.same(storing.waiting)
            storing.written_ps = self.value(storing.written_ps, TIME)
            self.same(storing.last is None)
            if storing.last is not None:
                self.packet(storing.last)
        return 0
