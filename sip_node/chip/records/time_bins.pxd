"""The load of a link over time, in C: see time_bins.pyx."""

cimport cython

from sip_node.compiled.packed_rows cimport PackedRows


cdef struct Load:
    # What a bin holds: `number` is that of the bin.
    long long number
    long long nbytes
    long long busy_ps
    long long queued_ps
    long long packets


cdef packed struct LinkRow:
    # The columns of `LINKS`.
    int link
    int kind
    Load load


cdef struct OpenBin:
    # The last bin of a `TimeBins`: services that end before `edge_ps` are in it, and all that is
    # done with them is to add. It is 0 while services are logged.
    long long edge_ps
    long long nbytes
    long long busy_ps
    long long queued_ps
    long long packets
    void *bins


cdef struct BatchedService:
    # Two fill a line of the cache.
    OpenBin *bin
    long long start_ps
    unsigned int busy_ps
    unsigned int nbytes
    unsigned int queued_ps
    unsigned int packets


cdef struct LatestServices:
    BatchedService *services
    Py_ssize_t count
    Py_ssize_t room
    # The `ServiceBatch`.
    void *batch


cdef struct AddedService:
    long long start_ps
    long long end_ps
    long long nbytes
    long long queued_ps
    long long packets


cdef class ServiceBatch:
    cdef LatestServices latest
    # The binary logarithm of the width that the bins of all its servers have in the end.
    cdef int width
    # To whose bins services may point.
    cdef list members

    cdef int sort_in(self) except -1
    cdef int allocate(self) except -1


cdef class ServiceTemplate:
    cdef AddedService *services
    cdef Py_ssize_t count
    cdef TimeBins bins


@cython.final
cdef class TimeBins:
    # What each service needs comes first; `latest` is a part of `batch`.
    cdef LatestServices *latest
    cdef public long long waited_ps
    cdef OpenBin open_bin
    cdef ServiceBatch batch
    # Services that begin before `end_ps` are in the open bin.
    cdef long long end_ps
    # The bins before.
    cdef Load *loads
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity
    cdef long long last_number
    # The binary logarithm of their width.
    cdef int width
    cdef bint is_logged
    cdef AddedService *log
    cdef Py_ssize_t count
    cdef Py_ssize_t room

    cpdef int add(
        self, long long start_ps, long long end_ps, long long nbytes, long long queued_ps,
        long long packets,
    ) except -1
    cdef bint has_load(self) noexcept
    cdef int serve(self, AddedService *service) except -1
    cdef int pack(self, PackedRows rows, int link, int kind) except -1
    cdef int release(self) except -1
    cdef int put(self, AddedService *service, long long moved_ps) except -1
    cdef int open(self, long long time_ps) except -1
    cdef int close(self) except -1
    cdef int widen_to(self, int width) except -1


cdef int make_room(LatestServices *latest) except -1
cdef int add_large(LatestServices *latest, OpenBin *bin, AddedService *service) except -1


cdef inline int add_service(
    LatestServices *latest, OpenBin *bin, long long start_ps, long long end_ps, long long nbytes,
    long long queued_ps, long long packets,
) except -1:
    """Add a service to the batch of its SIP. Inline: each packet calls it at each link."""
    cdef BatchedService *added
    cdef AddedService large
    if (end_ps - start_ps | nbytes | queued_ps | packets) >> 32:
        large.start_ps, large.end_ps, large.nbytes = start_ps, end_ps, nbytes
        large.queued_ps, large.packets = queued_ps, packets
        return add_large(latest, bin, &large)
    if latest.count == latest.room:
        make_room(latest)
    added = &latest.services[latest.count]
    latest.count += 1
    added.bin, added.start_ps = bin, start_ps
    added.busy_ps = <unsigned int> (end_ps - start_ps)
    added.nbytes = <unsigned int> nbytes
    added.queued_ps = <unsigned int> queued_ps
    added.packets = <unsigned int> packets
    return 0
