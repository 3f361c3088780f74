"""The handle of a collective that was called with `async_op=True`, of a send or of a receive."""

from dataclasses import dataclass

from runtime.core.device import COMMUNICATION_STREAM, Handle
from runtime.device.rank.rank_state import current_rank, running_rank


@dataclass(frozen=True)
class Work:
    """A queued or running operation. The collectives of a rank run in the order of the calls; sends
    and receives run side by side.

    Later work waits for it if it uses one of its tensors; that needs no `wait`. `handle` has the
    times of the launch of its kernel once it is complete.
    """

    handle: Handle

    def wait(self) -> bool:
        """Make the current stream wait for the operation; always True. The rank goes on at
        once.
        """
        device = running_rank().device
        device.order_after(device.stream, (self.handle,))
        return True

    def is_completed(self) -> bool:
        """Whether it is complete on this rank. A loop around it lets simulated time pass: a
        repeated call waits for the next answer of the device.
        """
        state = current_rank.get(None)
        if state is None:
            # Behind the end of the program.
            return self.handle.done
        return state.device.poll("work", lambda: (self.handle,))


def communication_stream() -> int:
    """The stream of collectives; its later commands wait for the current stream."""
    device = running_rank().device
    device.order_after_stream(COMMUNICATION_STREAM, device.stream)
    return COMMUNICATION_STREAM
