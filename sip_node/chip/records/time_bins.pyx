"""The load of a link over time, in C; time_bins.py has what is computed.

A run has thousands of servers, and packets pass them in turn: the sums of each would be in no cache
when a service is added to them. So a service only appends some numbers to the batch of its SIP.
When that is full, all its services are sorted into their bins together, and the sums of those ahead
are fetched in the meantime:

    services   a1 b1 c1 a2 d1 b2 ...      one behind the other, in the order of their servers' calls
    sorted in  a: a1 a2   b: b1 b2   c: c1   d: d1

The bins of all servers of a batch get one width in the end, and bins that begin have it from then
on.

A fast-forward logs the services of a period, and repeats them for the periods that it skips.
"""

from cpython.mem cimport PyMem_Free
from libc.string cimport memcpy

from runtime.core.compiled.memory_blocks cimport resized
from runtime.core.run_tables import LEAST_BIN_PS, MOST_BINS
from sip_node.compiled.prefetch cimport prefetch

cdef enum:
    FIRST_CAPACITY = 12
    FIRST_ROOM = 48
    # 32 KB: the caches have other uses as well.
    BATCH = 1024
    # The open bin of the service that is so far ahead is fetched meanwhile; halfway, the memory
    # behind the bins before it.
    AHEAD = 16
    LINE_BYTES = 64

LEAST_SHIFT = LEAST_BIN_PS.bit_length() - 1
cdef int LEAST_WIDTH = LEAST_SHIFT
cdef long long BINS = MOST_BINS


cdef class ServiceBatch:
    """The latest services of servers, which are in no bins yet."""

    def __cinit__(self):
        self.latest.batch, self.width, self.members = <void *> self, LEAST_WIDTH, []

    def __dealloc__(self):
        PyMem_Free(self.latest.services)

    cdef int sort_in(self) except -1:
        """Put all services into bins."""
        cdef BatchedService *services = self.latest.services
        cdef BatchedService *service
        cdef OpenBin *bin
        cdef AddedService added
        cdef Py_ssize_t index, count = self.latest.count
        cdef long long end_ps
        if not count:
            return 0
        # Also where memory for a bin is missing: a service is added once.
        self.latest.count = 0
        # Most bins that begin now are narrow enough for the last service, and are united with none.
        service = &services[count - 1]
        self.width = needed_width(
            service.start_ps, service.start_ps + service.busy_ps, self.width
        )
        for index in range(count):
            bin = services[min(index + AHEAD, count - 1)].bin
            prefetch(bin, 1, 3)
            prefetch(<char *> bin + LINE_BYTES, 1, 3)
            service = &services[min(index + AHEAD // 2, count - 1)]
            if service.start_ps + service.busy_ps >= service.bin.edge_ps:
                prefetch(next_load(service.bin), 1, 3)
            service = &services[index]
            bin, end_ps = service.bin, service.start_ps + service.busy_ps
            if end_ps < bin.edge_ps:
                bin.nbytes += service.nbytes
                bin.busy_ps += service.busy_ps
                bin.queued_ps += service.queued_ps
                bin.packets += service.packets
            else:
                added.start_ps, added.end_ps = service.start_ps, end_ps
                added.nbytes, added.queued_ps = service.nbytes, service.queued_ps
                added.packets = service.packets
                (<TimeBins> bin.bins).serve(&added)
        return 0

    cdef int allocate(self) except -1:
        """Allocate the memory of the services, with the first of them."""
        self.latest.services = <BatchedService *> resized(NULL, BATCH * sizeof(BatchedService))
        self.latest.room = BATCH
        return 0


cdef inline Load *next_load(OpenBin *bin) noexcept:
    """The memory for a bin that ends, when the next one begins."""
    return &(<TimeBins> bin.bins).loads[(<TimeBins> bin.bins).size]


cdef int make_room(LatestServices *latest) except -1:
    """Make room for a service."""
    cdef ServiceBatch batch = <ServiceBatch> latest.batch
    return batch.sort_in() if latest.room else batch.allocate()


cdef int add_large(LatestServices *latest, OpenBin *bin, AddedService *service) except -1:
    """Add a service whose numbers do not fit into a batch."""
    (<ServiceBatch> latest.batch).sort_in()
    return (<TimeBins> bin.bins).serve(service)


cdef class TimeBins:
    """The bins of a server whose services come in `batch`."""

    def __cinit__(self, ServiceBatch batch=None):
        if batch is None:
            self.batch = ServiceBatch()
        else:
            self.batch = batch
            batch.members.append(self)
        self.latest = &self.batch.latest
        self.open_bin.bins, self.width = <void *> self, LEAST_WIDTH

    def __dealloc__(self):
        PyMem_Free(self.log)
        PyMem_Free(self.loads)

    @property
    def shift(self):
        """See the version in Python."""
        self.batch.sort_in()
        return self.width

    cpdef int add(
        self, long long start_ps, long long end_ps, long long nbytes, long long queued_ps,
        long long packets,
    ) except -1:
        queued_ps += self.waited_ps
        self.waited_ps = 0
        return add_service(
            self.latest, &self.open_bin, start_ps, end_ps, nbytes, queued_ps, packets
        )

    @property
    def is_used(self):
        """See the version in Python."""
        self.batch.sort_in()
        return self.has_load()

    def rows(self):
        """See the version in Python."""
        cdef Py_ssize_t index
        cdef Load *load
        self.batch.sort_in()
        self.close()
        rows = []
        for index in range(self.size):
            load = &self.loads[index]
            rows.append((load.number, load.nbytes, load.busy_ps, load.queued_ps, load.packets))
        return rows

    def widen(self, int shift):
        """See the version in Python."""
        self.batch.sort_in()
        self.widen_to(shift)

    def begin_log(self):
        """Log the services from now on."""
        self.batch.sort_in()
        self.is_logged, self.open_bin.edge_ps = True, 0

    @property
    def logged(self):
        """The number of services in the log."""
        self.batch.sort_in()
        return self.count

    def end_log(self):
        """Log no more services, and forget those that are logged."""
        self.batch.sort_in()
        PyMem_Free(self.log)
        self.is_logged, self.log, self.count, self.room = False, NULL, 0, 0
        self.open_bin.edge_ps = self.end_ps

    def template(self, Py_ssize_t first):
        """The services in the log from number `first` on."""
        cdef ServiceTemplate template = ServiceTemplate()
        self.batch.sort_in()
        template.bins, template.count = self, self.count - first
        template.services = <AddedService *> resized(NULL, template.count * sizeof(AddedService))
        memcpy(template.services, &self.log[first], template.count * sizeof(AddedService))
        return template

    cdef bint has_load(self) noexcept:
        """Whether there is a bin that is not empty."""
        return self.size > 0 or self.open_bin.packets > 0 or self.open_bin.busy_ps > 0

    cdef int serve(self, AddedService *service) except -1:
        """Add a service which is logged, or ends in another bin."""
        if self.is_logged:
            if self.count == self.room:
                self.room = 2 * self.room + FIRST_ROOM
                self.log = <AddedService *> resized(self.log, self.room * sizeof(AddedService))
            self.log[self.count] = service[0]
            self.count += 1
        return self.put(service, 0)

    cdef int pack(self, PackedRows rows, int link, int kind) except -1:
        """Append the row of each bin to `rows`, with the indices of two texts."""
        cdef Py_ssize_t index
        cdef LinkRow *row
        self.close()
        for index in range(self.size):
            row = <LinkRow *> rows.new_row()
            row.link, row.kind, row.load = link, kind, self.loads[index]
            row.load.number <<= self.width - LEAST_WIDTH
        return 0

    cdef int release(self) except -1:
        """Free the memory of all bins, which are no longer needed."""
        PyMem_Free(self.loads)
        self.loads, self.size, self.capacity = NULL, 0, 0
        return 0

    cdef int put(self, AddedService *service, long long moved_ps) except -1:
        """Put a service into bins, `moved_ps` later."""
        cdef long long start_ps = service.start_ps + moved_ps, end_ps = service.end_ps + moved_ps
        cdef OpenBin *bin = &self.open_bin
        if start_ps >= self.end_ps:
            self.open(start_ps)
        bin.nbytes += service.nbytes
        bin.queued_ps += service.queued_ps
        bin.packets += service.packets
        while end_ps > self.end_ps:
            bin.busy_ps += self.end_ps - start_ps
            start_ps = self.end_ps
            self.open(start_ps)
        bin.busy_ps += end_ps - start_ps
        return 0

    cdef int open(self, long long time_ps) except -1:
        """Begin the bin of a time."""
        self.close()
        self.batch.width = needed_width(time_ps, time_ps, self.batch.width)
        self.widen_to(self.batch.width)
        self.end_ps = ((time_ps >> self.width) + 1) << self.width
        self.open_bin.edge_ps = 0 if self.is_logged else self.end_ps
        return 0

    cdef int close(self) except -1:
        """Put the open bin behind the others; the next service looks for its bin."""
        cdef OpenBin *bin = &self.open_bin
        cdef Load load
        if bin.packets or bin.busy_ps:
            load.number = (self.end_ps >> self.width) - 1
            load.nbytes, load.busy_ps = bin.nbytes, bin.busy_ps
            load.queued_ps, load.packets = bin.queued_ps, bin.packets
            bin.nbytes = bin.busy_ps = bin.queued_ps = bin.packets = 0
            # Not the number in the last load, which is in no cache.
            if self.size and self.last_number == load.number:
                unite(&self.loads[self.size - 1], &load)
            else:
                if self.size == self.capacity:
                    self.capacity = 2 * self.capacity + FIRST_CAPACITY
                    self.loads = <Load *> resized(self.loads, self.capacity * sizeof(Load))
                self.loads[self.size] = load
                self.size += 1
                self.last_number = load.number
        self.end_ps = bin.edge_ps = 0
        return 0

    cdef int widen_to(self, int width) except -1:
        """Unite bins until they have a width."""
        cdef Py_ssize_t index, size = 0
        cdef int doubled = width - self.width
        cdef Load *load
        if doubled <= 0:
            return 0
        self.close()
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
        self.last_number >>= doubled
        return 0


cdef class ServiceTemplate:
    """The services of a period of a server."""

    def __dealloc__(self):
        PyMem_Free(self.services)

    def onto(self, TimeBins bins not None):
        """The same services, of another server."""
        self.bins = bins
        return self

    def repeat(self, long long moved_ps, long long period_ps, long long periods):
        """Add these services again, `moved_ps` later, and then one period later each time."""
        cdef TimeBins bins = self.bins
        cdef AddedService *service
        cdef AddedService total
        cdef OpenBin *bin = &bins.open_bin
        cdef Py_ssize_t index
        cdef long long fit
        if not self.count:
            return
        bins.batch.sort_in()
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
            if (
                self.services[0].start_ps + moved_ps < bins.end_ps
                and total.end_ps + moved_ps <= bins.end_ps
            ):
                # As many periods as end in the bin that is open.
                fit = min((bins.end_ps - total.end_ps - moved_ps) // period_ps + 1, periods)
            if fit:
                bin.nbytes += fit * total.nbytes
                bin.busy_ps += fit * total.start_ps
                bin.queued_ps += fit * total.queued_ps
                bin.packets += fit * total.packets
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


cdef inline int needed_width(long long start_ps, long long end_ps, int width) noexcept nogil:
    """The least width from `width` on for the last bin of a service, which may take no time."""
    cdef long long time_ps = max(start_ps, end_ps - 1)
    while time_ps >> width >= BINS:
        width += 1
    return width
