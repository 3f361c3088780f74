"""A FIFO server by calendar arithmetic: links, ports of memories and channels of HBM.

The server keeps one number, the time at which it is free. Since it is FIFO and never idles while a
message waits, the service of a message is known when the message arrives, and no queue is simulated
(Lindley's recursion: start = max(arrival, end of the previous service)).

`ReferenceServer` is this server in Python. `Server` is its compiled twin where that is built.
"""

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.simtime import NEVER_PS, PS_PER_NS, exact
from sip_node.chip.time_bins import TimeBins


class ReferenceServer:
    """Serialises bytes at `bw_gbs`, one message at a time, in the order of `reserve` calls.

    A message has a head and a tail, the arrival times of its first and last byte. Service starts
    when the head has arrived and the server is free (cut-through: it does not wait for the tail).
    The tail leaves when all bytes are served and have arrived: `max(start + nbytes / bw, tail in)`.
    Until then the server is busy: a slow link before it holds a fast one. `bins` are its load over
    time, in a run with records.
    """

    __slots__ = ("_bytes_per_ps", "bins", "busy_ps", "free_ps", "name", "nbytes", "queued_ps")

    def __init__(self, name: str, bw_gbs: float) -> None:
        self.name = name
        self._bytes_per_ps = _ratio(bw_gbs)
        self.bins: TimeBins | None = None
        self.free_ps = 0
        self.busy_ps = 0
        self.queued_ps = 0
        self.nbytes = 0

    @property
    def byte_ps(self) -> Fraction:
        """Time of one byte, exactly."""
        numerator, denominator = self._bytes_per_ps
        return Fraction(denominator, numerator)

    def serialisation_ps(self, nbytes: int) -> int:
        """Time that `nbytes` take, rounded up to the picosecond."""
        numerator, denominator = self._bytes_per_ps
        duration_ps = -(-nbytes * denominator // numerator)
        if duration_ps > NEVER_PS:
            raise self._too_long(nbytes)
        return duration_ps

    def reserve(self, head_ps: int, tail_ps: int, nbytes: int) -> tuple[int, int]:
        """(start, tail) of a message that arrives from `head_ps` to `tail_ps`."""
        start = self.free_ps
        # Comparisons, since two calls of max() cost a tenth of all hops per second.
        if start < head_ps:  # noqa: PLR1730
            start = head_ps
        # Exact integers, rounded up: the same on every machine, and never faster than the link.
        numerator, denominator = self._bytes_per_ps
        tail = start - (-nbytes * denominator // numerator)
        if tail < tail_ps:  # noqa: PLR1730
            tail = tail_ps
        # The sum of all waits is the only one that can exceed the time of the run.
        if tail > NEVER_PS or start - head_ps + self.queued_ps > NEVER_PS:
            raise self._too_long(nbytes)
        # Until the tail has left, even while the link idles in between: packets do not interleave.
        self.free_ps = tail
        self.busy_ps += tail - start
        self.queued_ps += start - head_ps
        self.nbytes += nbytes
        if self.bins is not None:
            self.bins.add(start, tail, nbytes, start - head_ps)
        return start, tail

    def _too_long(self, nbytes: int) -> OverflowError:
        return OverflowError(f"{self.name}: {nbytes} bytes end later than a run can")


@cache
def _ratio(bw_gbs: float) -> tuple[int, int]:
    """Bytes per picosecond as a fraction: 1 GB/s is one byte a nanosecond."""
    ratio = exact(bw_gbs) / PS_PER_NS
    return ratio.numerator, ratio.denominator


if TYPE_CHECKING or not IS_COMPILED:
    _Server = ReferenceServer
else:
    from sip_node.compiled.server import FifoServer as _Server


class Server(_Server):
    """The server that links and memories are built from; a class of `impl:` derives from it."""

    __slots__ = ()
