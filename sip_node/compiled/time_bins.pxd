"""The load of a link over time, in C: see time_bins.pyx."""

cdef struct Load:
    # What a bin holds, and a service adds to it: `number` is that of the bin.
    long long number
    long long nbytes
    long long busy_ps
    long long queued_ps
    long long packets


cdef struct AddedService:
    long long start_ps
    long long end_ps
    long long nbytes
    long long queued_ps
    long long packets


cdef class ServiceTemplate:
    cdef AddedService *services
    cdef Py_ssize_t count
    cdef TimeBins bins


cdef class TimeBins:
    # The services that are added and in no bin yet; while they are logged, all of them.
    cdef AddedService *added
    cdef Py_ssize_t count
    cdef Py_ssize_t room
    cdef public long long waited_ps
    cdef bint is_logged
    # The binary logarithm of the width of the bins.
    cdef int width
    # The bins; services that begin before `end_ps` are in the last of them.
    cdef Load *loads
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity
    cdef long long end_ps

    cdef int make_room(self) except -1
    cdef int needed_width(self) noexcept
    cdef int sort_in(self) except -1
    cdef int put(self, AddedService *service, long long moved_ps) except -1
    cdef int open(self, long long time_ps) except -1
    cdef int widen_to(self, int width) except -1


cdef inline int add_service(
    TimeBins bins, long long start_ps, long long end_ps, long long nbytes, long long queued_ps,
    long long packets,
) except -1:
    """`ReferenceTimeBins.add` for C classes. Inline: each packet calls it at each link."""
    cdef AddedService *service
    if bins.count == bins.room:
        bins.make_room()
    service = &bins.added[bins.count]
    bins.count += 1
    service.start_ps, service.end_ps, service.nbytes = start_ps, end_ps, nbytes
    service.queued_ps, service.packets = queued_ps + bins.waited_ps, packets
    bins.waited_ps = 0
    return 0
