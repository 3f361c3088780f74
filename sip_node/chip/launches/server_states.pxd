"""The states of the servers of a chip: see server_states.pyx."""

from sip_node.kernel.containers.int_array cimport IntArray

cdef enum:
    # The values of a change: the time until the server is ready again and the direction of the last
    # service, at the begin; when it is free and that direction, at the end; the growth of its sums.
    CHANGED = 7


cdef class ServerStates:
    cdef list servers
    # By server: the channels of the slice that it belongs to, or None, and its place there.
    cdef list channels, turning

    cdef long long direction(self, Py_ssize_t index) except? -2
    cdef long long penalty_ps(self, Py_ssize_t index) except -1


cdef class ServerChanges:
    cdef ServerStates states
    # Of the servers that have served, with `CHANGED` values of each.
    cdef IntArray indices
    cdef IntArray values
