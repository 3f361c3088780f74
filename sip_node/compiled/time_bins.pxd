"""The load of a link over time, in C: see time_bins.pyx."""

cdef struct Load:
    # What a bin holds, and a service adds to it: `number` is that of the bin.
    long long number
    long long nbytes
    long long busy_ps
    long long queued_ps
    long long packets


cdef struct OpenBin:
    # What has been added to the last bin since its load was counted: by services that end before
    # `edge_ps`, which is 0 while services are kept.
    long long edge_ps
    long long nbytes
    long long busy_ps
    long long queued_ps
    long long packets
    # For the next service: see `ReferenceTimeBins`.
    long long waited_ps


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
    # In the server, where that is a `FifoServer`: a service then touches no other memory.
    cdef OpenBin *open_bin
    cdef OpenBin own_bin
    cdef object server
    # The bins; services that begin before `end_ps` are in the last of them.
    cdef Load *last
    cdef Load *loads
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity
    cdef long long end_ps
    # The binary logarithm of their width.
    cdef int width
    # The first services, and those that are logged, are kept, and in no bin yet.
    cdef bint is_keeping
    cdef bint is_logged
    cdef AddedService *kept
    cdef Py_ssize_t count
    cdef Py_ssize_t room

    cdef int move_to(self, OpenBin *place, object server) except -1
    cdef int count_open(self) except -1
    cpdef object packed(self, int link, int kind)
    cdef int serve(self, AddedService *service) except -1
    cdef int make_room(self) except -1
    cdef int keep_no_more(self) except -1
    cdef int release(self) except -1
    cdef int needed_width(self) noexcept
    cdef int sort_in(self) except -1
    cdef int put(self, AddedService *service, long long moved_ps) except -1
    cdef int open(self, long long time_ps) except -1
    cdef int widen_to(self, int width) except -1


cdef inline int add_service(
    TimeBins bins, OpenBin *open_bin, long long start_ps, long long end_ps, long long nbytes,
    long long queued_ps, long long packets,
) except -1:
    """`ReferenceTimeBins.add` for C classes. Inline: each packet calls it at each link."""
    cdef AddedService service
    queued_ps += open_bin.waited_ps
    open_bin.waited_ps = 0
    if end_ps < open_bin.edge_ps:
        open_bin.nbytes += nbytes
        open_bin.busy_ps += end_ps - start_ps
        open_bin.queued_ps += queued_ps
        open_bin.packets += packets
        return 0
    service.start_ps, service.end_ps, service.nbytes = start_ps, end_ps, nbytes
    service.queued_ps, service.packets = queued_ps, packets
    return bins.serve(&service)
