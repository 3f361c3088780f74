"""The slots of messages that a kernel sends, in C; see `sip_node.programs.kernel_send`.

A message is a continuation of its own commands: the end of each resumes it at its next step.
"""

from collections import deque

from runtime.core.run_tables import Cause
from runtime.core.trace import Operand
from sip_node.compiled.calendar cimport Calendar
from sip_node.chip.completion cimport AnyCompletion as Completion, Continuation, completed
from sip_node.compiled.queue_state cimport QueueState

cdef enum Step:
    ISSUED
    RESERVED
    LEFT

cdef object operand = Operand
cdef object CREDIT = Cause.CREDIT
cdef object NO_CAUSE = Cause.NONE


cdef class SentMessage(Continuation):
    """The twin of `ReferenceSentMessage`."""

    def __init__(self, QueueState queue not None, block, data, long long nbytes,
                 Completion paused not None, str background=""):
        self.background = background
        self.queue, self.block, self.data, self.nbytes = queue, block, data, nbytes
        self.paused = paused
        self.operation, self.line, self.direction = "send", "", queue.direction
        self.address, self.dtype = block.address, block.dtype

    @property
    def cause(self):
        """See the reference."""
        return CREDIT if self.starved else NO_CAUSE

    cdef int resume(self, Completion done) except -1:
        if self.step == ISSUED:
            return self.sends.reserve(self)
        if self.step == RESERVED:
            return self.sends.write(self, done.value)
        return self.sends.left(self)


cdef class SlotSends:
    """The first base of the sends of a kernel whose second base is `ReferenceSends`."""

    def bind(self, Calendar engine not None, long long issue_ps, wait, dma, queues, str call,
             trace, part_of, item_bytes):
        """Take what the reference holds, and functions of the rooms above."""
        self.calendar, self.issue_ps, self.wait = engine, issue_ps, wait
        self.dma, self.call, self.trace = dma, call, trace
        self.table, self.excluded = queues.table, queues.excluded
        self.part_of, self.item_bytes = part_of, item_bytes

    def _begin(self, SentMessage message not None):
        """See the reference."""
        message.sends, message.item = self, self.item_bytes(message.dtype)
        self.issue(message)
        return message.paused

    def _append(self, SentMessage message not None):
        """See the reference."""
        message.sends, message.item = self, self.item_bytes(message.dtype)
        waiting = self._background.get(message.direction)
        if waiting is None:
            waiting = self._background[message.direction] = deque()
        waiting.append(message)
        self.wait.leaving += 1
        if len(waiting) == 1:
            self.reserve(message)
        return completed(None)

    cdef int issue(self, SentMessage message) except -1:
        """Issue the command for the next slot."""
        message.since_ps, message.step = self.calendar.now_ps, ISSUED
        if not message.background:
            self.wait.current = message
        return self.calendar.resume_at(message.since_ps + self.issue_ps, message)

    cdef int reserve(self, SentMessage message) except -1:
        cdef long long address = message.queue.reserve()
        if address >= 0:
            return self.write(message, address)
        message.step, message.starved = RESERVED, True
        return (<Completion> message.queue.acquire()).then(message)

    cdef int write(self, SentMessage message, long long address) except -1:
        """Write the next slot of the message, which is reserved at the peer."""
        cdef long long start = message.sent, nbytes
        if not message.background:
            self.wait.current = None
        nbytes = min(message.queue.slot_size, message.nbytes - start)
        content = message.data
        if nbytes == message.nbytes:
            source = message.block
        else:
            source = self.part(message, start, nbytes)
            content = content[start:start + nbytes]
        message.slot = operand(address, source.shape, source.dtype)
        message.step = LEFT
        left = self.dma.push(
            source, message.slot, content, message.queue.queue_pair.packet_bytes, self.call
        )
        return (<Completion> left).then(message)

    cdef object part(self, SentMessage message, long long start, long long nbytes):
        """`part_of` the block of a message."""
        if start % message.item or nbytes % message.item:
            return self.part_of(message.block, start, nbytes)
        return operand(message.address + start, (nbytes // message.item,), message.dtype)

    cdef int left(self, SentMessage message) except -1:
        """The last byte of a slot has left the TCM."""
        if self.trace is not None:
            self.trace.sent(message.queue.queue_pair, message.slot)
        message.sent += message.queue.slot_size
        # For every slot anew: a collective may have started on these queues in the meantime.
        if message.sent < message.nbytes and not (self.excluded and self.table.user):
            return self.issue(message)
        if message.background:
            return self.next(message)
        return message.paused.complete(None)

    cdef int next(self, SentMessage message) except -1:
        """A message in the background has left, or has failed: begin the next one."""
        waiting = self._background[message.direction]
        waiting.popleft()
        self.wait.leaving -= 1
        if message.sent < message.nbytes:
            message.paused.fail(self._interrupted(message))
        else:
            message.paused.complete(None)
        if waiting:
            return self.reserve(<SentMessage> waiting[0])
        return 0
