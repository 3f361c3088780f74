"""All-reduce in ASTRA-sim: three times that it computed, and a closed form that explains them.

The times: ASTRA-sim, congestion-aware analytical network, its ring example with 50 GB/s and 500 ns
a hop, built 2026-11. They are data; no code of that program is used here.

The closed form is ours. It uses the settings of that example (4 chunks of the buffer, sent one
after the other, 10 ns at an endpoint, local memory of 1600 GB/s) and its unit of bandwidth, 2^30
B/s for a GB/s of a link. Each chunk passes the ring alone, c bytes in a step:

    4 x 2(p-1) (500 + 10 + c/B + 1.5 c/1600) ns        c = n/4p, B = 50 x 2^30 / 10^9 B/ns

where 1.5 is the mean number of passes over local memory in a step. It is inferred from the times,
which the form meets within 0.05 %.
"""

from typing import NamedTuple

ALPHA_NS = 500.0
GBS = 50.0
CHUNKS = 4
ENDPOINT_NS = 10.0
LOCAL_GBS = 1600.0
PASSES = 1.5
GIB_PER_GB = 2**30 / 10**9


class AstraSimTime(NamedTuple):
    """Time of an all-reduce of `nbytes` a rank over `ranks` in a ring, computed by ASTRA-sim."""

    ranks: int
    nbytes: int
    time_us: float


ASTRA_SIM = (
    AstraSimTime(8, 1 << 20, 64.44),
    AstraSimTime(16, 1 << 20, 99.64),
    AstraSimTime(16, 64 << 20, 2522.86),
)


class AstraSimParts(NamedTuple):
    """The terms of the closed form, in nanoseconds."""

    alpha_ns: float
    moving_ns: float
    endpoint_ns: float
    memory_ns: float

    @property
    def total_ns(self) -> float:
        """The whole time."""
        return sum(self)


def explained(ranks: int, nbytes: int) -> AstraSimParts:
    """The closed form of ASTRA-sim's ring."""
    # One chunk at a time: chunks do not overlap, so each pays all its steps.
    steps, chunk = CHUNKS * 2 * (ranks - 1), nbytes / (CHUNKS * ranks)
    return AstraSimParts(
        alpha_ns=steps * ALPHA_NS,
        moving_ns=steps * chunk / (GBS * GIB_PER_GB),
        endpoint_ns=steps * ENDPOINT_NS,
        memory_ns=steps * PASSES * chunk / LOCAL_GBS,
    )
