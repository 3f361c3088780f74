"""`torch.profiler.record_function`: its ranges appear in the trace of the run, in simulated time.

PyTorch's own profiler measures wall time, that of the simulator. A range in the trace has the time
that the device spends on the commands which were submitted in it.
"""

import functools
from typing import Any

from torch.autograd.profiler import record_function

from runtime.torch.rank_state import current_rank


def record_ranges() -> None:
    """Report the ranges of all `record_function` blocks, PyTorch's own included."""
    enter, leave = record_function.__enter__, record_function.__exit__

    @functools.wraps(enter)
    def entered(self: Any) -> Any:
        # A thread that loads data is outside of the program.
        if state := current_rank.get(None):
            state.device.ranges.begin(self.name, state.device.now_ps)
        return enter(self)

    @functools.wraps(leave)
    def left(self: Any, *given: Any) -> Any:
        if state := current_rank.get(None):
            state.device.ranges.end(state.device.now_ps)
        return leave(self, *given)

    record_function.__enter__, record_function.__exit__ = entered, left
