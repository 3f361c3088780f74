"""The FIFO server in C, as Python sees it."""

from fractions import Fraction

from sip_node.compiled.time_bins import TimeBins

class FifoServer:
    name: str
    free_ps: int
    busy_ps: int
    queued_ps: int
    nbytes: int
    bins: TimeBins | None
    def __init__(self, name: str, bw_gbs: float) -> None: ...
    @property
    def byte_ps(self) -> Fraction: ...
    def serialisation_ps(self, nbytes: int) -> int: ...
    def reserve(self, head_ps: int, tail_ps: int, nbytes: int) -> tuple[int, int]: ...
