"""Converts times, bytes and bandwidths to cycles and flits of the clocked routers.

All of them share one clock, whose cycle n begins at n periods. A flit occupies a link for a whole
number of cycles; delays are rounded up to whole cycles, at each hop once.
"""

from fractions import Fraction
from typing import NamedTuple

from runtime.core.simtime import PS_PER_NS, exact
from runtime.model.schema import NocConfig


class Pipeline(NamedTuple):
    """The stages of a router in cycles.

    A head flit is routed in `route` cycles, requests the switch `allocate` cycles after it has got
    a virtual channel, and leaves the router `leave` cycles after it has won the switch.
    """

    route: int
    allocate: int
    leave: int


def pipeline(stages: int) -> Pipeline:
    """The pipeline of a router with `stages` cycles from input to output (Dally & Towles, ch. 16).

        4   route | allocate VC | allocate switch | traverse
        3   look-ahead routing: the route is known when the head arrives
        2   speculation: a VC and the switch are allocated in one cycle
        1   all in one cycle

    A node with more stages only delays its flits for longer.
    """
    return Pipeline(
        route=int(stages >= 4), allocate=int(stages >= 3), leave=min(stages, 2) + max(stages - 4, 0)
    )


class NocClock:
    """The clock and the flits of `noc`."""

    def __init__(self, noc: NocConfig) -> None:
        self.period_ps = _ceil(PS_PER_NS / exact(noc.clock_ghz))
        self.flit_bytes = noc.flit_bytes

    def cycle(self, time_ps: int) -> int:
        """The first cycle that begins at `time_ps` or later."""
        return (time_ps + self.period_ps - 1) // self.period_ps

    def flits(self, nbytes: int) -> int:
        """The flits of a packet; a packet without bytes has a head as well."""
        return max(1, (nbytes + self.flit_bytes - 1) // self.flit_bytes)

    def delay_cycles(self, delay_ps: int) -> int:
        """The cycles of a delay, at least one: a flit is in a register at each end of a wire."""
        return max(1, self.cycle(delay_ps))

    def flit_cycles(self, bw_gbs: float) -> int:
        """The cycles for which a flit occupies a link, at least one."""
        period_ns = Fraction(self.period_ps, PS_PER_NS)
        return max(1, _ceil(self.flit_bytes / exact(bw_gbs) / period_ns))


def _ceil(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)
