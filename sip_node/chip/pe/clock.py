"""The clock of an engine: cycles to simulated time."""

from runtime.core.simtime import PS_PER_NS, exact


class Clock:
    """Cycles at `clock_ghz`. Nothing waits for an edge: a number of cycles is a duration."""

    def __init__(self, clock_ghz: float) -> None:
        self._cycle_ps = PS_PER_NS / exact(clock_ghz)

    def ps(self, cycles: int) -> int:
        """The time of `cycles`, rounded up to the picosecond."""
        return -(-cycles * self._cycle_ps.numerator // self._cycle_ps.denominator)
