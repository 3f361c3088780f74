"""Rows of the study of algorithms that were not simulated: every time is a formula."""

from collections.abc import Callable

from kernbench.studies.ccl_algorithms.rows import AlgorithmResults, AlgorithmRow

SIZES = (2, 128, 512, 2048, 8192)
RANKS = (3, 8)
Time = Callable[[int, int], float]
"""Picoseconds by ranks and bytes."""


def rows(**times: Time) -> list[AlgorithmRow]:
    """A row of every algorithm for all ranks and sizes."""
    return [
        AlgorithmRow(
            collective="all_reduce",
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
    """The time of as many steps as ranks; each costs a constant and its bytes."""
    return lambda ranks, nbytes: ranks * (each_ps + nbytes * ps_a_byte)


def results() -> AlgorithmResults:
    """Two algorithms, equally fast at 1000 bytes: 300,000 + 1000 x 100 = 100,000 + 1000 x 300."""
    return AlgorithmResults(
        version=4,
        topology="topology.yaml",
        topology_hash="0" * 64,
        rows=tuple(rows(ring=steps(300_000, 100), tree=steps(100_000, 300))),
    )
