"""A FIFO server by calendar arithmetic: links, ports of memories and channels of HBM.

The server keeps one number, the time at which it is free. Since it is FIFO and never idles while a
message waits, the service of a message is known when the message arrives, and no queue is simulated
(Lindley's recursion: start = max(arrival, end of the previous service)).
"""

from fractions import Fraction
from functools import cache

from runtime.core.simtime import PS_PER_NS
from runtime.core.simtime import exact as decimal
from sip_node.chip.records.time_bins import TimeBins
from sip_node.kernel import exact


class FifoServer:
    """Serialises bytes at `bw_gbs`, one message at a time, in the order in which they come.

    A message has a head and a tail, the arrival times of its first and last byte. Service starts
    when the head has arrived and the server is free (cut-through: it does not wait for the tail).
    The tail leaves when all bytes are served and have arrived: `max(start + nbytes / bw, tail in)`.
    Until then the server is busy: a slow link before it holds a fast one. `tail_ps` is the tail of
    the last message; `bins` are the load over time, in a run with records.

    Times are exact. The time of a byte is a ratio: where both of its parts have 64 bits, they are
    in `_numerator` and `_denominator`.
    """

    def __init__(self, name: str, bw_gbs: float) -> None:
        self.name, self._bw_gbs = name, bw_gbs
        self.byte_ps, self._numerator, self._denominator = _time_of_a_byte(bw_gbs)
        self._served_nbytes = self._served_ps = 0
        self.bins: TimeBins | None = None
        self.free_ps = self.busy_ps = self.queued_ps = self.nbytes = self.tail_ps = 0
        # By a class of `impl:` or a test.
        self.is_replaced = type(self).reserve is not FifoServer.reserve

    def serialisation_ps(self, nbytes: int) -> int:
        """Time that `nbytes` take, rounded up to the picosecond."""
        return self._duration_ps(nbytes)

    def _duration_ps(self, nbytes: int) -> int:
        # Most packets of a link have one size: a comparison in place of a division.
        if nbytes != self._served_nbytes:
            if self._numerator:
                duration_ps = exact.ceil_ratio(nbytes, self._numerator, self._denominator)
            else:
                # By Python: integers of any size.
                duration_ps = exact.long_ceil_ratio(nbytes, self.byte_ps)
            if duration_ps > exact.NEVER_PS:
                raise self._too_long(nbytes)
            self._served_ps, self._served_nbytes = duration_ps, nbytes
        return self._served_ps

    def reserve(self, head_ps: int, tail_ps: int, nbytes: int) -> tuple[int, int]:
        """(start, tail) of a message that arrives from `head_ps` to `tail_ps`.

        A class of `impl:` may define another one: the links of the fabric call it.
        """
        is_replaced, self.is_replaced = self.is_replaced, False
        start_ps = self.serve(head_ps, tail_ps, nbytes)
        self.is_replaced = is_replaced
        return start_ps, self.tail_ps

    def serve(self, head_ps: int, tail_ps: int, nbytes: int) -> int:
        """The start of a message, by `reserve`; its tail is in `tail_ps` then. For texts alone."""
        if self.is_replaced:
            # By Python: the method of a class of the user.
            start_ps, self.tail_ps = self.reserve(head_ps, tail_ps, nbytes)
            return start_ps
        start_ps = self.free_ps
        # Comparisons, since two calls of max() cost a tenth of all hops per second.
        if start_ps < head_ps:  # noqa: PLR1730
            start_ps = head_ps
        # Exact integers, rounded up: the same on every machine, and never faster than the link.
        duration_ps = self._duration_ps(nbytes)
        queued_ps = start_ps - head_ps
        # The sum of all waits is the only other one that can exceed the time of the run.
        if (
            duration_ps > exact.NEVER_PS - start_ps
            or tail_ps > exact.NEVER_PS
            or queued_ps > exact.NEVER_PS - self.queued_ps
        ):
            raise self._too_long(nbytes)
        end_ps = start_ps + duration_ps
        if end_ps < tail_ps:  # noqa: PLR1730
            end_ps = tail_ps
        # Until the tail has left, even while the link idles in between: packets do not interleave.
        self.free_ps = self.tail_ps = end_ps
        # With the time in which a slow link before this one holds it: no other message could use
        # it.
        self.busy_ps += end_ps - start_ps
        self.queued_ps += queued_ps
        self.nbytes += nbytes
        if self.bins is not None:
            self.bins.add(start_ps, end_ps, nbytes, queued_ps, 1)
        return start_ps

    def copied(self) -> "FifoServer":
        """A server of the same bandwidth that has served nothing, to compute ahead."""
        return FifoServer(self.name, self._bw_gbs)

    def _too_long(self, nbytes: int) -> OverflowError:
        return OverflowError(f"{self.name}: {nbytes} bytes end later than a run can")


@cache
def _time_of_a_byte(bw_gbs: float) -> tuple[Fraction, int, int]:
    """Time of one byte, exactly, and both of its parts; 0 where one of them is longer than 64 bits.

    A SIP has thousands of servers and a dozen bandwidths.
    """
    # The decimal that the user wrote, not the nearest binary number.
    byte_ps = PS_PER_NS / decimal(bw_gbs)
    if not exact.fits(byte_ps):
        return byte_ps, 0, 0
    return byte_ps, byte_ps.numerator, byte_ps.denominator


class Server(FifoServer):
    """The server that links and memories are built from; a class of `impl:` derives from it."""
