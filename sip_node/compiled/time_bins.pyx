"""The load of a link over time, in C; see `sip_node.chip.time_bins`.

The first services are kept, and sorted into bins together: the bins then have the width for the
last of them, in a short run the final one. Later services mostly end in the bin that is open, and
cost a comparison and four additions. The numbers to which they are added are in the server itself:
a run has thousands of servers, and each service would otherwise fetch other memory into the caches.

A fast-forward logs the services of a period, and repeats them for the periods that it skips.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.string cimport memcpy

from runtime.core.run_tables import LEAST_BIN_PS, LINKS, MOST_BINS

cdef enum:
    FIRST_ROOM = 12
    # Services that are kept, where none are logged.
    MOST_KEPT = 48
    FIRST_CAPACITY = 12

cdef int LEAST_WIDTH = LEAST_BIN_PS.bit_length() - 1
cdef long long BINS = MOST_BINS


cdef packed struct LinkRow:
    # The columns of `LINKS`.
    int link
    int kind
    Load load


assert sizeof(LinkRow) == LINKS.row_bytes


cdef class TimeBins:
    """The twin of `ReferenceTimeBins`."""

    def __cinit__(self):
        self.width, self.is_keeping, self.open_bin = LEAST_WIDTH, True, &self.own_bin

    def __dealloc__(self):
        PyMem_Free(self.kept)
        PyMem_Free(self.loads)

    @property
    def shift(self):
        """See `ReferenceTimeBins`."""
        return self.needed_width()

    def add(self, long long start_ps, long long end_ps, long long nbytes, long long queued_ps,
            long long packets=1):
        """See `ReferenceTimeBins.add`."""
        add_service(self, self.open_bin, start_ps, end_ps, nbytes, queued_ps, packets)

    @property
    def waited_ps(self):
        """See `ReferenceTimeBins`."""
        return self.open_bin.waited_ps

    @waited_ps.setter
    def waited_ps(self, long long waited_ps):
        self.open_bin.waited_ps = waited_ps

    @property
    def is_used(self):
        """See `ReferenceTimeBins.is_used`."""
        return self.size > 0 or self.count > 0

    def rows(self):
        """See `ReferenceTimeBins.rows`."""
        cdef Py_ssize_t index
        cdef Load *load
        self.sort_in()
        found = []
        for index in range(self.size):
            load = &self.loads[index]
            found.append((load.number, load.nbytes, load.busy_ps, load.queued_ps, load.packets))
        return found

    def widen(self, int shift):
        """See `ReferenceTimeBins.widen`."""
        self.widen_to(shift)

    cpdef object packed(self, int link, int kind):
        """See `ReferenceTimeBins.packed`."""
        cdef Py_ssize_t index
        cdef LinkRow *rows
        self.sort_in()
        packed = PyBytes_FromStringAndSize(NULL, self.size * sizeof(LinkRow))
        rows = <LinkRow *> PyBytes_AS_STRING(packed)
        for index in range(self.size):
            rows[index].link, rows[index].kind = link, kind
            rows[index].load = self.loads[index]
            rows[index].load.number <<= self.width - LEAST_WIDTH
        return packed

    def begin_log(self):
        """Log the services from now on."""
        self.sort_in()
        self.is_keeping, self.is_logged, self.open_bin.edge_ps = True, True, 0

    @property
    def logged(self):
        """The number of services in the log."""
        return self.count if self.is_logged else 0

    def end_log(self):
        """Log no more services, and forget those that are logged."""
        self.is_logged = False
        self.keep_no_more()

    def template(self, Py_ssize_t first):
        """The services in the log from number `first` on."""
        cdef ServiceTemplate template = ServiceTemplate()
        template.bins, template.count = self, self.count - first
        template.services = <AddedService *> PyMem_Malloc(
            max(1, template.count) * sizeof(AddedService)
        )
        if not template.services:
            raise MemoryError
        memcpy(template.services, &self.kept[first], template.count * sizeof(AddedService))
        return template

    cdef int move_to(self, OpenBin *place, object server) except -1:
        """Count the services of the open bin in `place`, a part of `server`."""
        place[0] = self.open_bin[0]
        self.open_bin, self.server = place, server
        return 0

    cdef int count_open(self) except -1:
        """Add to the last bin what is in the open one."""
        cdef OpenBin *added = self.open_bin
        if self.last:
            self.last.nbytes += added.nbytes
            self.last.busy_ps += added.busy_ps
            self.last.queued_ps += added.queued_ps
            self.last.packets += added.packets
            added.nbytes = added.busy_ps = added.queued_ps = added.packets = 0
        return 0

    cdef int serve(self, AddedService *service) except -1:
        """Add a service which is kept, or ends in another bin."""
        if self.is_keeping and self.count == self.room:
            if self.is_logged or self.count < MOST_KEPT:
                self.make_room()
            else:
                self.keep_no_more()
        if not self.is_keeping:
            return self.put(service, 0)
        self.kept[self.count] = service[0]
        self.count += 1
        return 0

    cdef int make_room(self) except -1:
        """Make room for more services that are kept."""
        cdef Py_ssize_t room = max(2 * self.room, MOST_KEPT) if self.room else FIRST_ROOM
        cdef void *found = PyMem_Realloc(self.kept, room * sizeof(AddedService))
        if not found:
            raise MemoryError
        self.kept, self.room = <AddedService *> found, room
        return 0

    cdef int keep_no_more(self) except -1:
        """Put all services into bins, from now on at once."""
        self.sort_in()
        PyMem_Free(self.kept)
        self.is_keeping, self.kept, self.room = False, NULL, 0
        self.open_bin.edge_ps = self.end_ps
        return 0

    cdef int release(self) except -1:
        """Free the memory of all services and bins, which are no longer needed."""
        PyMem_Free(self.kept)
        PyMem_Free(self.loads)
        self.kept, self.loads, self.last = NULL, NULL, NULL
        self.count = self.room = self.size = self.capacity = 0
        self.end_ps = self.open_bin.edge_ps = 0
        return 0

    cdef int needed_width(self) noexcept:
        """The width of the bins with the services that are kept."""
        cdef AddedService *last
        cdef long long time_ps
        cdef int width = self.width
        if self.count:
            # The last bin of the last service; a service may take no time.
            last = &self.kept[self.count - 1]
            time_ps = max(last.start_ps, last.end_ps - 1)
            while time_ps >> width >= BINS:
                width += 1
        return width

    cdef int sort_in(self) except -1:
        """Put the services that are kept into bins."""
        cdef Py_ssize_t index
        self.count_open()
        self.widen_to(self.needed_width())
        for index in range(self.count):
            self.put(&self.kept[index], 0)
        self.count = 0
        return 0

    cdef int put(self, AddedService *service, long long moved_ps) except -1:
        """Put a service into bins, `moved_ps` later."""
        cdef long long start_ps = service.start_ps + moved_ps, end_ps = service.end_ps + moved_ps
        cdef Load *load
        self.count_open()
        if start_ps >= self.end_ps:
            self.open(start_ps)
        load = self.last
        load.nbytes += service.nbytes
        load.queued_ps += service.queued_ps
        load.packets += service.packets
        while end_ps > self.end_ps:
            load.busy_ps += self.end_ps - start_ps
            start_ps = self.end_ps
            self.open(start_ps)
            load = self.last
        load.busy_ps += end_ps - start_ps
        return 0

    cdef int open(self, long long time_ps) except -1:
        """Begin the bin of a time."""
        cdef Load *load
        cdef long long number
        cdef void *found
        while time_ps >> self.width >= BINS:
            self.widen_to(self.width + 1)
        number = time_ps >> self.width
        self.end_ps = (number + 1) << self.width
        self.open_bin.edge_ps = 0 if self.is_keeping else self.end_ps
        if self.size and self.last.number == number:
            return 0
        if self.size == self.capacity:
            self.capacity = 2 * self.capacity + FIRST_CAPACITY
            found = PyMem_Realloc(self.loads, self.capacity * sizeof(Load))
            if not found:
                raise MemoryError
            self.loads = <Load *> found
        load = self.last = &self.loads[self.size]
        load.number = number
        load.nbytes = load.busy_ps = load.queued_ps = load.packets = 0
        self.size += 1
        return 0

    cdef int widen_to(self, int width) except -1:
        """Unite bins until they have a width."""
        cdef Py_ssize_t index, size = 0
        cdef int doubled = width - self.width
        cdef Load *load
        if doubled <= 0:
            return 0
        self.count_open()
        self.width = width
        for index in range(self.size):
            load = &self.loads[index]
            load.number >>= doubled
            if size and self.loads[size - 1].number == load.number:
                unite(&self.loads[size - 1], load)
            else:
                self.loads[size] = load[0]
                size += 1
        self.size = size
        # The next service looks for its bin.
        self.end_ps = self.open_bin.edge_ps = 0
        if size:
            self.last = &self.loads[size - 1]
        return 0


cdef class ServiceTemplate:
    """The services of a period of a server."""

    def __dealloc__(self):
        PyMem_Free(self.services)

    def repeat(self, long long moved_ps, long long period_ps, long long periods):
        """Add these services again, `moved_ps` later, and then one period later each time."""
        cdef TimeBins bins = self.bins
        cdef AddedService *service
        cdef AddedService total
        cdef Load *load
        cdef Py_ssize_t index
        cdef long long fit
        if not self.count:
            return
        bins.sort_in()
        total.nbytes = total.queued_ps = total.packets = total.start_ps = 0
        for index in range(self.count):
            service = &self.services[index]
            # Of the services, which do not overlap, only the sum of their times counts in a bin.
            total.start_ps += service.end_ps - service.start_ps
            total.nbytes += service.nbytes
            total.queued_ps += service.queued_ps
            total.packets += service.packets
        total.end_ps = self.services[self.count - 1].end_ps
        while periods:
            fit = 0
            if self.services[0].start_ps + moved_ps < bins.end_ps:
                # As many periods as end in the bin that is open.
                fit = (bins.end_ps - total.end_ps - moved_ps) // period_ps + 1
                fit = min(fit, periods) if total.end_ps + moved_ps <= bins.end_ps else 0
            if fit:
                load = bins.last
                load.nbytes += fit * total.nbytes
                load.busy_ps += fit * total.start_ps
                load.queued_ps += fit * total.queued_ps
                load.packets += fit * total.packets
            else:
                fit = 1
                for index in range(self.count):
                    bins.put(&self.services[index], moved_ps)
            periods -= fit
            moved_ps += fit * period_ps


cdef inline void unite(Load *load, Load *other) noexcept nogil:
    load.nbytes += other.nbytes
    load.busy_ps += other.busy_ps
    load.queued_ps += other.queued_ps
    load.packets += other.packets
