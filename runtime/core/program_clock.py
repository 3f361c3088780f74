"""The wall time for which the program of a rank computes, while simulated time stands still."""

from runtime.core.wallclock import now_s


class ProgramClock:
    """A stopwatch which runs while the program does. Another thread may read it."""

    def __init__(self) -> None:
        self._before_s = 0.0
        self._entered_s: float | None = None

    def enter(self) -> None:
        """The program runs from now on."""
        self._entered_s = now_s()

    def leave(self) -> None:
        """The program waits from now on, or has ended."""
        self._before_s += self.stretch_s
        self._entered_s = None

    @property
    def stretch_s(self) -> float:
        """The time that the program has run since it last waited; 0 while it waits."""
        entered_s = self._entered_s
        return 0.0 if entered_s is None else now_s() - entered_s

    @property
    def total_s(self) -> float:
        """The time that the program has run in all."""
        return self._before_s + self.stretch_s
