"""What a collective returns that was called with `async_op=True`."""

from dataclasses import dataclass

from runtime.core.requests import Handle
from runtime.torch.rank_state import running_rank


@dataclass(frozen=True)
class Work:
    """A collective on its way. Those of one rank run in the order in which they were called.

    What is submitted after it and uses none of its tensors does not wait for it; what uses one does, also without `wait`.
    `handle` tells what the launch of its kernel cost, once it is done.
    """

    handle: Handle

    def wait(self) -> bool:
        """Let simulated time pass until the collective is complete on this rank; always True."""
        running_rank().device.wait(self.handle)
        return True

    def is_completed(self) -> bool:
        """Whether it is complete on this rank. It takes no time, and time passes only while a rank waits for something."""
        return self.handle.done
