"""A FIFO server by calendar arithmetic, in C integers; see `sip_node.chip.fabric.server`.

Times are exact: the time of a message is `nbytes * denominator / numerator` rounded up, where
numerator / denominator are the bytes of a picosecond. The product of a transfer of megabytes and
the denominator of a bandwidth with many decimals does not fit into 64 bits.
"""

from fractions import Fraction
from functools import cache

from sip_node.compiled.int128 cimport int128
from sip_node.compiled.time_bins cimport TimeBins, add_service
from sip_node.compiled.times cimport NEVER_PS

cdef enum:
    PS_PER_NS = 1000


@cache
def byte_ps(bw_gbs):
    """Time of one byte, exactly. A SIP has thousands of servers and a dozen bandwidths."""
    return PS_PER_NS / Fraction(str(bw_gbs))


cdef class FifoServer:
    """The twin of `ReferenceServer`."""

    def __init__(self, name, bw_gbs):
        self.name = name
        self.free_ps = self.busy_ps = self.queued_ps = self.nbytes = 0
        # The decimal that the user wrote, not the nearest binary number; see `simtime.exact`.
        self.byte_ps = byte_ps(bw_gbs)
        # A bandwidth with more digits than 64 bits hold is computed with Python's integers.
        self.denominator = self.byte_ps.numerator if fits(self.byte_ps) else 0
        self.numerator = self.byte_ps.denominator if fits(self.byte_ps) else 0
        self.served_nbytes = self.served_ps = 0

    @property
    def bins(self):
        """Its load over time, in a run with records."""
        return self.load

    @bins.setter
    def bins(self, TimeBins bins not None):
        bins.wait_in(&self.waited_ps, self)
        self.load, self.latest, self.open_bin = bins, &bins.batch.latest, &bins.open_bin

    def serialisation_ps(self, long long nbytes):
        """Time that `nbytes` take, rounded up to the picosecond."""
        return self.duration_ps(nbytes)

    def reserve(self, long long head_ps, long long tail_ps, long long nbytes):
        """(start, tail) of a message that arrives from `head_ps` to `tail_ps`."""
        cdef Service service
        self.serve(head_ps, tail_ps, nbytes, &service)
        return service.start_ps, service.tail_ps

    cdef FifoServer copied(self):
        """A server of the same bandwidth that has served nothing, to compute ahead."""
        cdef FifoServer server = FifoServer.__new__(FifoServer)
        server.name, server.byte_ps = self.name, self.byte_ps
        server.numerator, server.denominator = self.numerator, self.denominator
        return server

    cdef object too_long(self, long long nbytes):
        return OverflowError(f"{self.name}: {nbytes} bytes end later than a run can")

    cdef long long duration_ps(self, long long nbytes) except -1:
        cdef int128 duration_ps
        cdef object long_ps
        # Most packets of a link have one size: a comparison in place of a division.
        if nbytes == self.served_nbytes:
            return self.served_ps
        if self.numerator:
            duration_ps = (<int128> nbytes * self.denominator + self.numerator - 1) // (
                <int128> self.numerator
            )
            if duration_ps > NEVER_PS:
                raise self.too_long(nbytes)
            self.served_ps = <long long> duration_ps
        else:
            long_ps = -(-nbytes * self.byte_ps.numerator // self.byte_ps.denominator)
            if long_ps > NEVER_PS:
                raise self.too_long(nbytes)
            self.served_ps = long_ps
        self.served_nbytes = nbytes
        return self.served_ps

    cdef int serve(
        self, long long head_ps, long long tail_ps, long long nbytes, Service *service
    ) except -1:
        """Serve a message: `reserve` for C classes."""
        cdef long long start_ps = max(head_ps, self.free_ps)
        cdef long long duration_ps = self.duration_ps(nbytes), end_ps
        # A start is never negative, so the difference is in range.
        if duration_ps > NEVER_PS - start_ps or tail_ps > NEVER_PS:
            raise self.too_long(nbytes)
        end_ps = max(start_ps + duration_ps, tail_ps)
        # The only sum here that can exceed the time of the run.
        if start_ps - head_ps > NEVER_PS - self.queued_ps:
            raise self.too_long(nbytes)
        # Until the tail has left, even while the link idles in between: packets do not interleave.
        self.free_ps = end_ps
        self.busy_ps += end_ps - start_ps
        self.queued_ps += start_ps - head_ps
        self.nbytes += nbytes
        if self.latest:
            add_service(
                self.latest, self.open_bin, start_ps, end_ps, nbytes,
                start_ps - head_ps + self.waited_ps, 1,
            )
            self.waited_ps = 0
        service.start_ps, service.tail_ps = start_ps, end_ps
        return 0


cdef bint fits(ratio) except -1:
    return max(ratio.numerator, ratio.denominator) < 1 << 63
