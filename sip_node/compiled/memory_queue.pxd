"""The transaction queue of a memory in C: see memory_queue.pyx."""

from sip_node.chip.memory.access cimport Access, AccessService

cdef enum:
    # Channels of a memory whose shares are computed here.
    MOST_CHANNELS = 32


cdef class MessageQueue:
    # The accesses behind the first one, which waits; None where there has been none.
    cdef object later
    cdef long long end_ps
    cdef bint waits


cdef class WaitingAccess:
    cdef Access access
    cdef MessageQueue message
    cdef long long place_ps
    # Bit i is whether it needs channel i.
    cdef unsigned long long needs
    # Of a memory in Python, what its `shares_of` returned; of others the bytes on each channel.
    cdef object shares
    cdef long long nbytes[MOST_CHANNELS]


cdef struct Span:
    # The begin of the first channel of an access, the begin of the last one, and the end.
    long long first_ps
    long long start_ps
    long long end_ps


cdef class Channels:
    cdef object memory
    cdef list channels
    cdef int count

    cdef int share(self, WaitingAccess waiting) except -1
    cdef long long free_ps(self, int index) except -1
    cdef int reserve(self, WaitingAccess waiting, long long head_ps, Span *span) except -1
    cdef int note(self, WaitingAccess waiting, long long waited_ps) except -1


cdef class StripedChannels(Channels):
    cdef long long burst_bytes
    cdef long long penalty_ps
    # Of each channel the direction of its last access: 1 for a write, -1 before the first one.
    cdef signed char wrote[MOST_CHANNELS]

    cdef long long share_range(
        self, WaitingAccess waiting, long long offset, long long nbytes
    ) noexcept


cdef class AccessQueue(AccessService):
    cdef Channels channels
    cdef list waiting
    cdef readonly dict _messages
    cdef long long demand[64]
    cdef long long wake_ps
    cdef bint is_held
    cdef bint is_dispatching

    cdef int place(self, Access access, MessageQueue message) except -1
    cdef int dispatch(self) except -1
    cdef unsigned long long idle(self) except? 0
    cdef int begin(self, Py_ssize_t index) except -1
    cdef int serve(self, WaitingAccess waiting) except -1
    cdef int drop_messages(self) except -1
    cdef int wake_at_first(self) except -1
