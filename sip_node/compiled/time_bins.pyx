"""The load of a link over time, in C; see `sip_node.chip.time_bins`.

A fast-forward logs the services of a period, and repeats them for the periods that it skips.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.string cimport memcpy

from runtime.core.run_tables import LEAST_BIN_PS, LINKS, MOST_BINS

cdef enum:
    FIRST_CAPACITY = 16

cdef int LEAST_SHIFT = LEAST_BIN_PS.bit_length() - 1
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
        self.shift = LEAST_SHIFT

    def __dealloc__(self):
        PyMem_Free(self.loads)
        PyMem_Free(self.log)

    def add(self, long long start_ps, long long end_ps, long long nbytes, long long queued_ps,
            long long packets=1):
        """See `ReferenceTimeBins.add`."""
        self.serve(start_ps, end_ps, nbytes, queued_ps, packets)

    @property
    def is_used(self):
        """See `ReferenceTimeBins.is_used`."""
        return self.size > 0 or self.load.packets > 0 or self.load.busy_ps > 0

    def rows(self):
        """See `ReferenceTimeBins.rows`."""
        cdef Py_ssize_t index
        cdef Load *load
        self.close()
        self.end_ps = 0
        found = []
        for index in range(self.size):
            load = &self.loads[index]
            found.append((load.number, load.nbytes, load.busy_ps, load.queued_ps, load.packets))
        return found

    def widen(self, int shift):
        """See `ReferenceTimeBins.widen`."""
        self.close()
        self.end_ps = 0
        while self.shift < shift:
            self.double()

    def packed(self, text, name, kind):
        """See `ReferenceTimeBins.packed`."""
        cdef Py_ssize_t index
        cdef LinkRow *rows
        cdef int link, of_kind
        self.close()
        self.end_ps = 0
        if not self.size:
            return b""
        link, of_kind = text(name), text(kind)
        packed = PyBytes_FromStringAndSize(NULL, self.size * sizeof(LinkRow))
        rows = <LinkRow *> PyBytes_AS_STRING(packed)
        for index in range(self.size):
            rows[index].link, rows[index].kind = link, of_kind
            rows[index].load = self.loads[index]
            rows[index].load.number <<= self.shift - LEAST_SHIFT
        return packed

    def begin_log(self):
        """Log the services from now on."""
        self.is_logged, self.logged = True, 0

    def end_log(self):
        """Log no more services, and forget those that are logged."""
        PyMem_Free(self.log)
        self.is_logged, self.log, self.logged, self.log_capacity = False, NULL, 0, 0

    def template(self, Py_ssize_t first):
        """The services in the log from number `first` on."""
        cdef ServiceTemplate template = ServiceTemplate()
        template.bins, template.count = self, self.logged - first
        template.services = <LoggedService *> PyMem_Malloc(
            max(1, template.count) * sizeof(LoggedService)
        )
        if not template.services:
            raise MemoryError
        memcpy(template.services, &self.log[first], template.count * sizeof(LoggedService))
        return template

    cdef int serve(
        self,
        long long start_ps,
        long long end_ps,
        long long nbytes,
        long long queued_ps,
        long long packets,
    ) except -1:
        """`add` for C classes."""
        cdef LoggedService service
        queued_ps += self.waited_ps
        self.waited_ps = 0
        if self.is_logged:
            service.start_ps, service.end_ps, service.nbytes = start_ps, end_ps, nbytes
            service.queued_ps, service.packets = queued_ps, packets
            self.note(&service)
        if start_ps >= self.end_ps:
            self.open(start_ps)
        self.load.nbytes += nbytes
        self.load.packets += packets
        self.load.queued_ps += queued_ps
        while end_ps > self.end_ps:
            self.load.busy_ps += self.end_ps - start_ps
            start_ps = self.end_ps
            self.open(start_ps)
        self.load.busy_ps += end_ps - start_ps
        return 0

    cdef int open(self, long long time_ps) except -1:
        """Begin the bin of a time."""
        self.close()
        while time_ps >> self.shift >= BINS:
            self.double()
        self.end_ps = ((time_ps >> self.shift) + 1) << self.shift
        return 0

    cdef int close(self) except -1:
        cdef void *found
        if not self.load.packets and not self.load.busy_ps:
            self.load.queued_ps = 0
            return 0
        if self.size == self.capacity:
            self.capacity = 2 * self.capacity + FIRST_CAPACITY
            found = PyMem_Realloc(self.loads, self.capacity * sizeof(Load))
            if not found:
                raise MemoryError
            self.loads = <Load *> found
        self.load.number = (self.end_ps >> self.shift) - 1
        if self.size and self.loads[self.size - 1].number == self.load.number:
            unite(&self.loads[self.size - 1], &self.load)
        else:
            self.loads[self.size] = self.load
            self.size += 1
        self.load.nbytes = self.load.busy_ps = self.load.queued_ps = self.load.packets = 0
        return 0

    cdef int double(self) except -1:
        """Unite pairs of bins."""
        cdef Py_ssize_t index, size = 0
        cdef Load *load
        self.shift += 1
        for index in range(self.size):
            load = &self.loads[index]
            load.number >>= 1
            if size and self.loads[size - 1].number == load.number:
                unite(&self.loads[size - 1], load)
            else:
                self.loads[size] = load[0]
                size += 1
        self.size = size
        return 0

    cdef int note(self, LoggedService *service) except -1:
        cdef void *found
        if self.logged == self.log_capacity:
            self.log_capacity = 2 * self.log_capacity + FIRST_CAPACITY
            found = PyMem_Realloc(self.log, self.log_capacity * sizeof(LoggedService))
            if not found:
                raise MemoryError
            self.log = <LoggedService *> found
        self.log[self.logged] = service[0]
        self.logged += 1
        return 0


cdef class ServiceTemplate:
    """The services of a period of a server."""

    def __dealloc__(self):
        PyMem_Free(self.services)

    def repeat(self, long long moved_ps, long long period_ps, long long periods):
        """Add these services again, `moved_ps` later, and then one period later each time."""
        cdef TimeBins bins = self.bins
        cdef LoggedService *service
        cdef LoggedService total
        cdef Py_ssize_t index
        cdef long long fit
        if not self.count:
            return
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
                bins.load.nbytes += fit * total.nbytes
                bins.load.busy_ps += fit * total.start_ps
                bins.load.queued_ps += fit * total.queued_ps
                bins.load.packets += fit * total.packets
            else:
                fit = 1
                for index in range(self.count):
                    service = &self.services[index]
                    bins.serve(
                        service.start_ps + moved_ps, service.end_ps + moved_ps, service.nbytes,
                        service.queued_ps, service.packets,
                    )
            periods -= fit
            moved_ps += fit * period_ps


cdef inline void unite(Load *load, Load *other) noexcept nogil:
    load.nbytes += other.nbytes
    load.busy_ps += other.busy_ps
    load.queued_ps += other.queued_ps
    load.packets += other.packets
