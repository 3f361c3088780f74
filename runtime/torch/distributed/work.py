"""The handle of a collective that was called with `async_op=True`."""

from dataclasses import dataclass

from runtime.core.requests import Handle
from runtime.torch.rank_state import running_rank


@dataclass(frozen=True)
class Work:
    """A queued or running collective. The collectives of a rank run in the order of the calls.

    Later work waits for it exactly if it uses one of its tensors; that needs no `wait`. `handle`
    has the times of the launch of its kernel once it is complete.
    """

    handle: Handle

    def wait(self) -> bool:
        """Wait in simulated time until the collective is complete on this rank; always True."""
        running_rank().device.wait(self.handle)
        return True

    def is_completed(self) -> bool:
        """Whether it is complete on this rank. The call takes no simulated time, so a loop around
        it never ends.
        """
        return self.handle.done
