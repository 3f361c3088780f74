cimport cython

from sip_node.chip.records.packet_train cimport PacketTrain
from sip_node.chip.memory.access cimport Access, AccessService
from sip_node.chip.memory.memory_channels cimport AccessChannels, Shares
from sip_node.kernel cimport exact
from sip_node.kernel.containers.int_array cimport IntArray


cdef int _MANY_MESSAGES, _DISPATCH


cdef class MessageQueue:
    cdef object later
    cdef long long end_ps
    cdef bint waits


cdef class WaitingAccess:
    cdef Access access
    cdef MessageQueue message
    cdef Shares shares
    cdef long long place_ps


cdef class AccessQueue(AccessService):
    cdef AccessChannels channels
    cdef list waiting
    cdef readonly dict _messages
    cdef IntArray _demand
    cdef IntArray _begun
    cdef long long _begins
    cdef long long wake_ps
    cdef bint is_held
    cdef bint _is_dispatching

    @cython.locals(message=MessageQueue)
    cpdef void submit(self, Access access) except *
    @cython.locals(
        waiting=WaitingAccess, before=WaitingAccess, place_ps=cython.longlong,
        index=cython.Py_ssize_t,
    )
    cdef int _place(self, Access access, MessageQueue message) except -1
    @cython.locals(waiting=WaitingAccess, index=cython.Py_ssize_t, free_ps=cython.longlong)
    cdef void _dispatch(self) except *
    @cython.locals(
        demand=IntArray, first_ps=cython.longlong, free_ps=cython.longlong, index=cython.Py_ssize_t
    )
    cdef long long _free_ps(self) except -1
    @cython.locals(needed=IntArray, now_ps=cython.longlong, place=cython.Py_ssize_t)
    cdef bint _is_ready(self, Shares shares) except -1
    @cython.locals(waiting=WaitingAccess, other=WaitingAccess, place=cython.Py_ssize_t)
    cdef void _begin(self, Py_ssize_t index) except *
    @cython.locals(needed=IntArray, begun=IntArray, place=cython.Py_ssize_t)
    cdef bint _needs_begun(self, Shares shares) noexcept
    @cython.locals(needed=IntArray, begun=IntArray, place=cython.Py_ssize_t)
    cdef void _note_begun(self, Shares shares) noexcept
    @cython.locals(needed=IntArray, demand=IntArray, place=cython.Py_ssize_t)
    cdef void _count(self, Shares shares, int change) noexcept
    @cython.locals(
        access=Access, message=MessageQueue, train=PacketTrain, channels=AccessChannels,
        now_ps=cython.longlong, waited_ps=cython.longlong, first_ps=cython.longlong,
        start_ps=cython.longlong, end_ps=cython.longlong,
    )
    cdef int _serve(self, WaitingAccess waiting) except -1
    @cython.locals(message=MessageQueue)
    cdef void _drop_messages(self) except *
