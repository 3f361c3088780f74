"""The transaction queue of a memory in C; see `sip_node.chip.memory.transaction_queue`.

The shares and the reservations of an HBM slice with pseudo channels are computed here. Those of any
other memory, and of a class derived from that one, are those of its methods in Python.
"""

from collections import deque

from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE

from sip_node.chip.memory.access cimport Access, AccessService
from sip_node.compiled.calendar cimport Calendar
from sip_node.chip.fabric.packet_train cimport PacketTrain
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.compiled.strided_rows cimport Rows, pass_row, rows_from, start_of
from sip_node.compiled.times cimport NEVER_PS

cdef enum:
    MOST_DEMANDED = 64
    MANY_MESSAGES = 256


cdef class MessageQueue:
    """A message, whose last packet that has begun ends at `end_ps`."""


cdef class WaitingAccess:
    """An access with a place in the queue."""


cdef class Channels:
    """The channels of a memory in Python, by its methods."""

    def __cinit__(self, memory):
        self.memory, self.channels = memory, list(memory.channels)
        self.count = len(self.channels)
        if self.count > MOST_DEMANDED:
            raise ValueError(f"a memory has at most {MOST_DEMANDED} channels, not {self.count}")

    cdef int share(self, WaitingAccess waiting) except -1:
        """Set what an access needs of each channel."""
        cdef int index = 0
        waiting.shares = self.memory.shares_of(waiting.access)
        for share in waiting.shares:
            if share:
                waiting.needs |= 1ULL << index
            index += 1
        return 0

    cdef long long free_ps(self, int index) except -1:
        return self.channels[index].free_ps

    cdef int reserve(self, WaitingAccess waiting, long long head_ps, Span *span) except -1:
        """Reserve the channels of an access from `head_ps` on, which is now."""
        cdef Access access = waiting.access
        if access.train is not None:
            self.note(waiting, head_ps - access.submitted_ps)
        span.first_ps, span.start_ps, span.end_ps = self.memory.reserve(
            waiting.shares, head_ps, access.tail_ps, access.writes
        )
        return 0

    cdef int note(self, WaitingAccess waiting, long long waited_ps) except -1:
        """See `ReferenceTransactionQueue._note_wait`."""
        cdef int index
        for index in range(self.count):
            if waiting.needs >> index & 1:
                bins = getattr(self.channels[index], "bins", None)
                if bins is not None:
                    bins.waited_ps = waited_ps
        return 0


cdef class StripedChannels(Channels):
    """The twin of `PseudoChannels`, on the same servers."""

    def __init__(self, memory):
        cdef int index
        self.burst_bytes, self.penalty_ps = memory.striping
        for index in range(MOST_CHANNELS):
            self.wrote[index] = -1

    cdef int share(self, WaitingAccess waiting) except -1:
        cdef Access access = waiting.access
        cdef Rows left
        cdef long long start, rest = access.nbytes
        cdef int index
        if access.rows is None:
            self.share_range(waiting, access.offset, access.nbytes)
        else:
            left = rows_from(access.rows, access.begin)
            while rest:
                start = access.offset + start_of(&left)
                rest -= self.share_range(waiting, start, pass_row(&left, rest))
        for index in range(self.count):
            if waiting.nbytes[index]:
                waiting.needs |= 1ULL << index
        return 0

    cdef long long share_range(
        self, WaitingAccess waiting, long long offset, long long nbytes
    ) noexcept:
        """Add the bytes of a range to those on each channel; returns how many it has."""
        cdef long long burst = self.burst_bytes, piece
        # Whole rounds over all channels take the same everywhere; only the rest is walked.
        cdef long long even = nbytes // (burst * self.count) * burst
        cdef long long rest = nbytes - even * self.count
        cdef int index
        for index in range(self.count):
            waiting.nbytes[index] += even
        while rest:
            piece = min(burst - offset % burst, rest)
            waiting.nbytes[offset // burst % self.count] += piece
            offset += piece
            rest -= piece
        return nbytes

    cdef long long free_ps(self, int index) except -1:
        return (<FifoServer> PyList_GET_ITEM(self.channels, index)).free_ps

    cdef int reserve(self, WaitingAccess waiting, long long head_ps, Span *span) except -1:
        cdef Access access = waiting.access
        cdef FifoServer channel
        cdef long long waited_ps = 0, start_ps
        cdef int index
        if access.train is not None:
            # As in `note`.
            waited_ps = head_ps - access.submitted_ps
        span.first_ps, span.start_ps, span.end_ps = NEVER_PS, head_ps, access.tail_ps
        for index in range(self.count):
            if not waiting.nbytes[index]:
                continue
            channel = <FifoServer> PyList_GET_ITEM(self.channels, index)
            if self.wrote[index] == (not access.writes):
                channel.free_ps += self.penalty_ps
            self.wrote[index] = access.writes
            if waited_ps and channel.bins is not None:
                channel.bins.waited_ps = waited_ps
            start_ps = channel.serve(head_ps, access.tail_ps, waiting.nbytes[index])
            # The slowest channel decides: a packet leaves when all of its bursts are there.
            span.first_ps = min(span.first_ps, start_ps)
            span.start_ps = max(span.start_ps, start_ps)
            span.end_ps = max(span.end_ps, channel.tail_ps)
        return 0


cdef class AccessQueue(AccessService):
    """The twin of `ReferenceTransactionQueue`."""

    def __init__(self, Calendar engine not None, memory):
        self.join(engine)
        self.channels = StripedChannels(memory) if in_c(memory) else Channels(memory)
        self.waiting, self._messages = [], {}

    def hold(self):
        """Begin no access until `resume`."""
        self.is_held = True

    def resume(self):
        """Serve again after `hold`."""
        self.is_held = False
        self.dispatch()

    cpdef void submit(self, Access access) except *:
        """Queue an access whose head has arrived."""
        cdef MessageQueue message
        access.submitted_ps = self.engine.now_ps
        found = self._messages.get(access.message)
        if found is None:
            message = self._messages[access.message] = MessageQueue.__new__(MessageQueue)
        else:
            message = <MessageQueue> found
            if message.waits:
                if message.later is None:
                    message.later = deque()
                message.later.append(access)
                return
        self.place(access, message)
        # An access that begins may submit the next one of its message.
        if not self.is_dispatching:
            self.dispatch()

    cpdef void proceed(self, int step, object subject) except *:
        # An earlier call may have made this one unnecessary.
        if self.engine.now_ps == self.wake_ps:
            self.wake_ps = 0
            self.dispatch()

    cdef int place(self, Access access, MessageQueue message) except -1:
        """Give an access its place: now, or the end of the packet before it of its message."""
        cdef WaitingAccess waiting = WaitingAccess.__new__(WaitingAccess)
        cdef Py_ssize_t index
        cdef int channel
        waiting.access, waiting.message = access, message
        self.channels.share(waiting)
        for channel in range(self.channels.count):
            self.demand[channel] += waiting.needs >> channel & 1
        assert waiting.needs, f"an access to no bytes: offset {access.offset}"
        message.waits = True
        waiting.place_ps = max(self.engine.now_ps, message.end_ps)
        # Behind all accesses with the same place, which were submitted before.
        index = PyList_GET_SIZE(self.waiting)
        while index and (<WaitingAccess> self.waiting[index - 1]).place_ps > waiting.place_ps:
            index -= 1
        self.waiting.insert(index, waiting)
        return 0

    cdef int dispatch(self) except -1:
        """Begin all accesses that can begin now."""
        cdef unsigned long long idle
        cdef Py_ssize_t index
        if self.is_held:
            return 0
        self.is_dispatching = True
        while PyList_GET_SIZE(self.waiting) and not self.is_held:
            idle = self.idle()
            if not idle:
                break
            # A channel that is idle and needed is needed by one of them.
            index = 0
            while not (<WaitingAccess> self.waiting[index]).needs & idle:
                index += 1
            self.begin(index)
        self.is_dispatching = False
        if PyList_GET_SIZE(self.waiting) and not self.is_held:
            self.wake_at_first()
        return 0

    cdef unsigned long long idle(self) except? 0:
        """The channels, as bits, that are free while an access needs them."""
        cdef unsigned long long idle = 0
        cdef int index
        for index in range(self.channels.count):
            if self.demand[index] and self.channels.free_ps(index) <= self.engine.now_ps:
                idle |= 1ULL << index
        return idle

    cdef int begin(self, Py_ssize_t index) except -1:
        """Begin an access, after those in front of it that share channels with it."""
        cdef WaitingAccess other = <WaitingAccess> self.waiting.pop(index)
        cdef unsigned long long needs = other.needs
        cdef list chosen
        if not index:
            return self.serve(other)
        chosen = [other]
        for index in range(index - 1, -1, -1):
            other = <WaitingAccess> self.waiting[index]
            if other.needs & needs:
                needs |= other.needs
                chosen.append(self.waiting.pop(index))
        for each in reversed(chosen):
            self.serve(<WaitingAccess> each)
        return 0

    cdef int serve(self, WaitingAccess waiting) except -1:
        cdef MessageQueue message = waiting.message
        cdef Span span
        cdef int channel
        for channel in range(self.channels.count):
            self.demand[channel] -= waiting.needs >> channel & 1
        self.channels.reserve(waiting, self.engine.now_ps, &span)
        if waiting.access.train is not None:
            waiting.access.train.wait_at_channels(
                waiting.needs, waiting.access.submitted_ps, span.start_ps, span.end_ps
            )
        message.end_ps, message.waits = span.end_ps, False
        if message.later:
            self.place(message.later.popleft(), message)
        if len(self._messages) > MANY_MESSAGES + 2 * PyList_GET_SIZE(self.waiting):
            self.drop_messages()
        waiting.access.begun(span.first_ps, span.start_ps, span.end_ps)
        return 0

    cdef int drop_messages(self) except -1:
        """Drop the messages whose next packet would have the place of a first one."""
        cdef MessageQueue message
        kept = {}
        for key, each in self._messages.items():
            message = <MessageQueue> each
            if message.waits or message.end_ps > self.engine.now_ps:
                kept[key] = message
        self._messages = kept
        return 0

    cdef int wake_at_first(self) except -1:
        """Dispatch again when the first channel that an access needs is free."""
        cdef long long time_ps = NEVER_PS
        cdef int index
        for index in range(self.channels.count):
            if self.demand[index]:
                time_ps = min(time_ps, self.channels.free_ps(index))
        if not self.wake_ps or time_ps < self.wake_ps:
            self.wake_ps = time_ps
            self.later(time_ps, 0, None)
        return 0


cdef bint in_c(memory) except -1:
    """Whether the shares of a memory are those of `StripedChannels`."""
    if getattr(memory, "striping", None) is None or len(memory.channels) > MOST_CHANNELS:
        return False
    return all(
        isinstance(each, FifoServer) and not (<FifoServer> each).is_replaced
        for each in memory.channels
    )
