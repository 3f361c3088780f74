"""The time of collectives for `torch.distributed._time_estimator`, which Inductor calls."""

from collections.abc import Sequence

from runtime.core.device import Handle
from runtime.torch.distributed import Work
from runtime.torch.rank_state import running_rank

_PS_PER_US = 1_000_000


class TimeEstimate:
    """A measurement: the collectives run in the simulation, in scratch memory, on every rank that
    calls them. They take simulated time as any others, and change no tensor.
    """

    def __init__(self) -> None:
        self._handles: list[Handle] = []

    def add(self, works: Sequence[Work | None]) -> None:
        """Count the commands of a collective."""
        self._handles += [work.handle for work in works if work is not None]

    def microseconds(self) -> float:
        """From the release of the first command on this rank to the end of the last one; 0 without
        any.
        """
        for each in self._handles:
            running_rank().device.wait(each)
        if not self._handles:
            return 0.0
        started_ps = min(each.released_ps for each in self._handles)
        return (max(each.device_done_ps for each in self._handles) - started_ps) / _PS_PER_US
