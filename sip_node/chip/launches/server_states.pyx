"""The states of the servers of a chip: what a launch has changed of them, and the same again.

Only what decides a time in the future is compared: when a server is free, and in which direction a
channel of HBM has served last. A server that is free when the launch begins was free at any time
before.
"""

from sip_node.chip.fabric.server cimport FifoServer
from sip_node.chip.memory.hbm cimport PseudoChannels
from sip_node.kernel.containers.int_array cimport IntArray

cdef enum:
    FREE
    BUSY
    QUEUED
    BYTES
    FIELDS


cdef class ServerStates:
    """The servers of a chip, and the channels among them that turn round."""

    def __init__(self):
        self.servers, self.channels, self.turning = [], [], []

    def add(self, server not None):
        """A server; raises `TypeError` for one of another class."""
        self.servers.append(<FifoServer?> server)
        self.channels.append(None)
        self.turning.append(0)

    def add_channels(self, channels not None):
        """The channels of a slice of HBM; raises `TypeError` for those of another class."""
        cdef PseudoChannels slice_ = <PseudoChannels?> channels
        for index, server in enumerate(slice_.channels):
            self.servers.append(<FifoServer?> server)
            self.channels.append(slice_)
            self.turning.append(index)

    def read(self):
        """The state of all servers now."""
        cdef IntArray state = IntArray()
        cdef Py_ssize_t index
        cdef FifoServer server
        for index in range(len(self.servers)):
            server = self.servers[index]
            state.append(server.free_ps)
            state.append(server.busy_ps)
            state.append(server.queued_ps)
            state.append(server.nbytes)
            state.append(self.direction(index))
        return state

    cdef long long direction(self, Py_ssize_t index) except? -2:
        cdef object channels = self.channels[index]
        if channels is None:
            return -1
        return (<PseudoChannels> channels).wrote.values[<Py_ssize_t> self.turning[index]]

    cdef long long penalty_ps(self, Py_ssize_t index) except -1:
        cdef object channels = self.channels[index]
        return 0 if channels is None else (<PseudoChannels> channels)._penalty_ps

    def changes(
        self, IntArray before not None, IntArray after not None, long long begin_ps,
        long long end_ps
    ):
        """What a launch from `begin_ps` to `end_ps` has changed."""
        cdef ServerChanges changes = ServerChanges.__new__(ServerChanges)
        cdef Py_ssize_t index, place, known = before.size // (FIELDS + 1)
        cdef long long *first
        cdef long long *second
        cdef long long zeros[FIELDS + 1]
        for place in range(FIELDS):
            zeros[place] = 0
        zeros[FIELDS] = -1
        changes.states, changes.indices, changes.values = self, IntArray(), IntArray()
        for index in range(after.size // (FIELDS + 1)):
            # One that the launch is the first to reach has not served before.
            first = &before.values[index * (FIELDS + 1)] if index < known else zeros
            second = &after.values[index * (FIELDS + 1)]
            if first[BYTES] == second[BYTES] and first[BUSY] == second[BUSY]:
                continue
            changes.indices.append(index)
            changes.values.append(
                max(0, first[FREE] + self.penalty_ps(index) - begin_ps)
            )
            changes.values.append(first[FIELDS])
            changes.values.append(second[FREE] - begin_ps)
            changes.values.append(second[FIELDS])
            changes.values.append(second[BUSY] - first[BUSY])
            changes.values.append(second[QUEUED] - first[QUEUED])
            changes.values.append(second[BYTES] - first[BYTES])
        changes.indices.trim()
        changes.values.trim()
        return changes


cdef class ServerChanges:
    """What a launch changes of the servers that it uses."""

    @property
    def nbytes(self):
        """Bytes of memory."""
        return (self.indices.size + self.values.size) * sizeof(long long)

    def onto(self, ServerStates states not None):
        """The same changes, of other servers."""
        self.states = states
        return self

    def equals(self, ServerChanges other not None):
        """Whether these are the changes of other servers, too."""
        cdef Py_ssize_t index
        if self.indices.size != other.indices.size:
            return False
        for index in range(self.indices.size):
            if self.indices.values[index] != other.indices.values[index]:
                return False
        for index in range(self.values.size):
            # The state before is compared when they are repeated.
            if index % CHANGED > 1 and self.values.values[index] != other.values.values[index]:
                return False
        return True

    def is_alike(self, long long now_ps):
        """Whether all servers would serve a launch that begins now as they have served that one."""
        cdef ServerStates states = self.states
        cdef long long *values = self.values.values
        cdef Py_ssize_t place, index
        cdef FifoServer server
        for place in range(self.indices.size):
            index = self.indices.values[place]
            server = states.servers[index]
            if max(0, server.free_ps + states.penalty_ps(index) - now_ps) != values[0]:
                return False
            if values[0] and states.direction(index) != values[1]:
                return False
            values += CHANGED
        return True

    def repeat(self, long long begin_ps):
        """Change the servers as a launch does that begins at `begin_ps`."""
        cdef ServerStates states = self.states
        cdef long long *values = self.values.values
        cdef Py_ssize_t place, index
        cdef FifoServer server
        for place in range(self.indices.size):
            index = self.indices.values[place]
            server = states.servers[index]
            server.free_ps = begin_ps + values[2]
            if states.channels[index] is not None:
                (<PseudoChannels> states.channels[index]).wrote.values[
                    <Py_ssize_t> states.turning[index]
                ] = values[3]
            server.busy_ps += values[4]
            server.queued_ps += values[5]
            server.nbytes += values[6]
            values += CHANGED
