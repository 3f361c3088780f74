"""StridedBlock of the study of algorithms that were not simulated: every time is a formula."""

from collections.abc import Callable

from kernbench.studies.ccl_algorithms.rows import VERSION, Row, Sweep

SIZES = (2, 128, 512, 2048, 8192)
RANKS = (2, 8)
Time = Callable[[int, int], float]
"""Picoseconds for so many ranks and bytes."""


def rows(**times: Time) -> list[Row]:
    """A row of every algorithm for all ranks and sizes."""
    return [
        Row(
            algorithm=name,
            ranks=ranks,
            nbytes=nbytes,
            time_ps=round(time(ranks, nbytes)),
            skew_ps=0,
            wrong=0,
        )
        for ranks in RANKS
        for nbytes in SIZES
        for name, time in times.items()
    ]


def steps(each_ps: float, ps_a_byte: float) -> Time:
    """As many steps as ranks, each of which costs something, and bytes."""
    return lambda ranks, nbytes: ranks * (each_ps + nbytes * ps_a_byte)


def sweep() -> Sweep:
    """Two algorithms that are equally fast at 1000 bytes: 1000 x 300 + 1000 x 100 = 1000 x 100 + 1000 x 300."""
    return Sweep(
        VERSION,
        "topology.yaml",
        "0" * 64,
        tuple(rows(ring=steps(300_000, 100), tree=steps(100_000, 300))),
    )
