"""Converts cycles of an engine's clock to simulated time."""

from runtime.core.simtime import PS_PER_NS, exact


class Clock:
    """A clock of `clock_ghz`. No operation waits for an edge: a number of cycles is a duration."""

    def __init__(self, clock_ghz: float) -> None:
        self.cycle_ps = PS_PER_NS / exact(clock_ghz)

    def ps(self, cycles: int) -> int:
        """The time of `cycles`, rounded up to the picosecond."""
        return -(-cycles * self.cycle_ps.numerator // self.cycle_ps.denominator)
