"""The slots of messages that a kernel receives, in C; see `sip_node.programs.kernel_receive`.

A receive is a continuation of its own copies and commands: the end of each resumes it.
"""

from runtime.core.trace import Operand
from sip_node.compiled.calendar cimport Calendar
from sip_node.chip.completion cimport AnyCompletion as Completion, Continuation
from sip_node.compiled.queue_state cimport QueueState, Slot

cdef enum:
    # The states of the reference, by their numbers there.
    POSTED = 1
    READING = 2
    ISSUING = 3
    AWAITING_SLOT = 4
    COMPLETE = 5
    FAILED = 6
    KEEPING = 7

cdef object operand = Operand
cdef tuple NAMES = (
    "", "POSTED", "READING", "ISSUING", "AWAITING_SLOT", "COMPLETE", "FAILED",
    "KEEPING",
)
# By state, one bit for each state that may follow.
cdef int[8] FOLLOWING = [
    0,
    1 << READING | 1 << KEEPING | 1 << FAILED,
    1 << ISSUING | 1 << COMPLETE,
    1 << READING | 1 << AWAITING_SLOT | 1 << FAILED,
    1 << READING | 1 << FAILED,
    0,
    0,
    1 << COMPLETE | 1 << FAILED,
]


cdef class ReceivedMessage(Continuation):
    """The base of the twin of `ReferenceReceive`; `step` is the number of its state."""

    def __init__(self, *, str direction, dtype, targets, str line, bint in_tcm,
                 bint in_place=False):
        self.in_place, self.kept = in_place, -1
        self.direction, self.dtype, self.targets = direction, dtype, targets
        self.line, self.in_tcm = line, in_tcm
        self.element = dtype.name
        self.done, self.received, self.source, self.step = Completion(), [], "", POSTED

    def enter(self, int state):
        """See the reference."""
        self.change(state)

    cdef int change(self, int step) except -1:
        """`enter` for classes in C."""
        assert FOLLOWING[self.step] >> step & 1, (
            f"a receive goes from {NAMES[self.step]} to {NAMES[step]}"
        )
        self.step = step
        return 0

    cdef int resume(self, Completion done) except -1:
        if self.step == ISSUING:
            return self.receives.issued(self)
        data = done.value
        return self.receives.copied(self, b"".join(data) if self.divided else data)

    cdef object next_target(self, long long nbytes):
        """Where the next bytes go, of a message with one target."""
        cdef long long start = self.begun
        target = self.targets[0]
        self.begun = start + nbytes
        if nbytes == self.nbytes:
            return target
        if start % self.item or nbytes % self.item:
            return self.receives.functions.part_of(target, start, nbytes)
        return operand(self.address + start, (nbytes // self.item,), target.dtype)


cdef class SlotReceives:
    """The first base of the receives of a kernel whose second base is `ReferenceReceives`."""

    def bind(self, Calendar engine not None, dma, queues not None, long long issue_ps, str call,
             trace, bint by_call, functions):
        """Take what the reference holds; `functions` are those of rooms above, by name.

        `by_call` is set for the receive of a transfer, whose call selects its slots.
        """
        self.calendar, self.dma, self.queues = engine, dma, queues
        self.issue_ps, self.call, self.trace = issue_ps, call, trace
        self.by_call, self.functions = by_call, functions

    def _slot_filled(self, str direction not None):
        cdef ReceivedMessage receive = self._matched.get(direction)
        if receive is None:
            self.match()
        elif receive.step == AWAITING_SLOT:
            self.read_slot(receive)
        elif receive.step == KEEPING:
            self.keep_slots(receive)

    def _match(self):
        self.match()

    cdef int match(self) except -1:
        """Give messages to receives, in the order of posting."""
        cdef ReceivedMessage receive
        if not self._posted:
            return 0
        for each in tuple(self._posted):
            receive = <ReceivedMessage> each
            direction = receive.direction
            if direction is None or self.by_call:
                direction = self._full_direction(receive)
            elif (
                direction in self._matched
                or not (<QueueState> self.queues._queues[direction]).arrived
            ):
                direction = None
            # A receive without a message does not hold up receives of other directions.
            if direction is not None:
                self._posted.remove(receive)
                self._matched[direction] = receive
                receive.source, receive.receives = direction, self
                receive.queue = <QueueState> self.queues._queues[direction]
                self.begin(receive)
        return 0

    cdef int begin(self, ReceivedMessage receive) except -1:
        """Read the first slot of a message."""
        functions = self.functions
        receive.nbytes = sum([functions.nbytes_of(each) for each in receive.targets])
        # A block with gaps is one DMA descriptor, and a slot boundary would cut it inside a row.
        if receive.nbytes > receive.queue.slot_size and not all(
            [functions.is_packed(each) for each in receive.targets]
        ):
            self._refuse_gaps(receive, receive.nbytes)
            return 0
        if len(receive.targets) == 1:
            target = receive.targets[0]
            receive.address, receive.item = target.address, functions.item_bytes(target.dtype)
        else:
            receive.parts = functions.cut(receive.targets, receive.queue.slot_size)
        if receive.in_place:
            receive.kept = self._kept.keep_next(receive.queue, receive.nbytes)
            if receive.kept >= 0:
                receive.change(KEEPING)
                return self.keep_slots(receive)
            self._kept.copied(receive.source, receive.address)
        return self.read_slot(receive)

    cdef int keep_slots(self, ReceivedMessage receive) except -1:
        """Take the slots of a message that have arrived, which stay where they are."""
        cdef QueueState queue = receive.queue
        cdef long long expected
        cdef Slot slot
        while receive.begun < receive.nbytes:
            if not queue.arrived:
                return 0
            slot = queue.arrived.popleft()
            expected = min(queue.slot_size, receive.nbytes - receive.begun)
            receive.begun += expected
            if slot.call != self.call or slot.nbytes != expected or slot.dtype != receive.element:
                self._fail(receive, self._mismatch(receive, slot, expected))
                return 0
            if self.trace is not None:
                self.trace.received(queue.queue_pair, slot)
        target = receive.targets[0]
        return self.complete(
            receive, self._read_tcm(operand(receive.kept, target.shape, target.dtype))
        )

    cdef int read_slot(self, ReceivedMessage receive) except -1:
        """Copy the next slot of the message, which is full, to its targets."""
        cdef Slot slot = receive.queue.arrived.popleft()
        cdef long long expected
        part = None
        if receive.parts is None:
            expected = min(receive.queue.slot_size, receive.nbytes - receive.begun)
        else:
            part = receive.parts.popleft()
            expected = part.nbytes
        if slot.call != self.call or slot.nbytes != expected or slot.dtype != receive.element:
            self._fail(receive, self._mismatch(receive, slot, expected))
            return 0
        receive.change(READING)
        receive.slot = slot
        blocks = [receive.next_target(expected)] if part is None else part.blocks
        return self.copy(receive, slot, blocks)

    cdef int copy(self, ReceivedMessage receive, Slot slot, blocks) except -1:
        cdef long long address = slot.address
        # To memory the bytes go straight from the ring, past the TCM and its port.
        copy = self.dma.read if receive.in_tcm else self.dma.copy
        receive.divided = len(blocks) > 1
        reads = []
        for target in blocks:
            source = operand(address, target.shape, target.dtype)
            reads.append(copy(source, target, "ipcq_recv"))
            if receive.divided:
                address += self.functions.nbytes_of(target)
        read = self.functions.all_of(reads) if receive.divided else reads[0]
        return (<Completion> read).then(receive)

    cdef int copied(self, ReceivedMessage receive, data) except -1:
        """A slot is in its targets."""
        if self.trace is not None:
            self.trace.received(receive.queue.queue_pair, receive.slot)
        receive.received.append(data)
        # The slot is empty, so its credit returns now and not at the end of the message.
        self._kept.slot_read(receive.queue)
        if receive.begun < receive.nbytes if receive.parts is None else receive.parts:
            receive.change(ISSUING)
            return self.calendar.resume_at(self.calendar.now_ps + self.issue_ps, receive)
        received = receive.received
        return self.complete(receive, received[0] if len(received) == 1 else b"".join(received))

    cdef int complete(self, ReceivedMessage receive, data) except -1:
        """The last slot of a message is read, or kept."""
        receive.change(COMPLETE)
        del self._matched[receive.source]
        if self.by_call:
            self.queues.end_message(receive.source, self.call)
        # Before the kernel goes on: what it does next must find the earlier receives matched.
        self.match()
        receive.received = receive.receives = None
        return receive.done.complete(data)

    cdef int issued(self, ReceivedMessage receive) except -1:
        """The command for the next slot is issued."""
        if receive.queue.arrived:
            return self.read_slot(receive)
        return receive.change(AWAITING_SLOT)
