"""The window of a DMA engine in C; see `sip_node.chip.pe.read_window`."""

from collections import deque
from heapq import heappop, heappush

from sip_node.compiled.calendar cimport Actor, Calendar, Event
from sip_node.chip.fabric.packet cimport FabricTransfer, new_packet
from sip_node.compiled.ports cimport Outlet
from sip_node.compiled.times cimport NEVER_PS

cdef enum:
    NORMAL = 1


cdef class OpenRead:
    """A READ of which the packets from byte `begin` on are left to send."""


cdef class ReadWindow(Actor):
    """The twin of `ReferenceReadWindow`."""

    def __init__(self, Calendar engine not None, fabric, int node, long long places,
                 long long packet_bytes, long long control_bytes):
        self.calendar, self.number = engine, engine.enlist(self)
        self.outlet, self.free = Outlet(fabric, node), places
        self.packet_bytes, self.control_bytes = packet_bytes, control_bytes
        self.landings, self.reading, self.wakes_ps = [], deque(), NEVER_PS

    def begin(self, FabricTransfer transfer not None, sent=None):
        """See `ReferenceReadWindow.begin`."""
        self.open(transfer, sent)

    cdef int open(self, FabricTransfer transfer, object sent) except -1:
        """`begin` for C classes."""
        cdef OpenRead reading = OpenRead.__new__(OpenRead)
        reading.transfer, reading.total, reading.sent = transfer, transfer.total, sent
        self.reading.append(reading)
        return self.fill()

    def landed(self, long long time_ps):
        """See `ReferenceReadWindow.landed`."""
        self.land(time_ps)

    cdef int land(self, long long time_ps) except -1:
        """`landed` for C classes."""
        heappush(self.landings, time_ps)
        # Only a stream that fills the window needs an event for each packet that lands.
        if self.reading:
            self.wake()
        return 0

    cdef int act(self, Event event, object subject) except -1:
        self.wakes_ps = NEVER_PS
        return self.fill()

    cdef int fill(self) except -1:
        cdef OpenRead reading
        while self.landings and self.landings[0] <= self.calendar.now_ps:
            heappop(self.landings)
            self.free += 1
        while self.reading and self.free:
            self.free -= 1
            reading = <OpenRead> self.reading.popleft()
            if self.send(reading):
                self.reading.append(reading)
            elif reading.sent is not None:
                reading.sent()
        if self.reading:
            self.wake()
        return 0

    cdef bint send(self, OpenRead reading) except -1:
        """Send the READ of the next packet; returns whether there are more."""
        cdef long long begin = reading.begin
        reading.begin = min(begin + self.packet_bytes, reading.total)
        last = reading.begin == reading.total
        self.outlet.send(
            new_packet(reading.transfer, begin, self.control_bytes, last), self.calendar.now_ps
        )
        return not last

    cdef int wake(self) except -1:
        """Continue when the next packet has landed; before any has come, `land` does it."""
        cdef Event event
        if self.landings and self.landings[0] < self.wakes_ps:
            self.wakes_ps = self.landings[0]
            event.actor = self.number
            self.calendar.insert(self.wakes_ps, NORMAL, event, None)
        return 0
