"""Events: points in a stream that other streams and the host wait for, with the simulated time.

An event is recorded by a control packet to the IO_CPU, which notes the time at which all before it
in its stream is complete.
"""

from typing import Protocol

from runtime.core.device import Handle
from runtime.device.rank.rank_state import current_rank, running_rank

_PS_PER_MS = 1_000_000_000


class StreamNumber(Protocol):
    """A stream by its number on the device of a rank; the class of streams records events."""

    rank: int
    number: int


class Event:
    """A point in a stream, once it is recorded; with `enable_timing` its time can be compared.

    `recorded` is its command, None before the first `record`.
    """

    def __init__(self, enable_timing: bool = False) -> None:  # noqa: FBT001, FBT002 - as in PyTorch
        self.enable_timing = enable_timing
        self.recorded: Handle | None = None

    def __repr__(self) -> str:
        """Whether it is recorded, and complete."""
        if self.recorded is None:
            return "<torch.ahbm.Event not recorded>"
        return f"<torch.ahbm.Event {'complete' if self.recorded.done else 'recorded'}>"

    def record(self, stream: StreamNumber | None = None) -> None:
        """Record the event behind the commands of `stream`, by default the current stream. A second
        call replaces the first.
        """
        self.recorded = running_rank().device.submit([], "an event", stream=_number(stream))

    def wait(self, stream: StreamNumber | None = None) -> None:
        """Later commands of `stream`, by default the current one, wait for the event. The rank goes
        on at once. An event that is not recorded changes nothing.
        """
        number = _number(stream)
        if self.recorded is not None:
            running_rank().device.order_after(number, (self.recorded,))

    def query(self) -> bool:
        """Whether the recorded commands are complete; True if nothing is recorded. A loop around it
        lets simulated time pass: a repeated call waits for the next answer of the device.
        """
        recorded = self.recorded
        state = current_rank.get(None)
        if recorded is None or state is None:
            return recorded is None or recorded.done
        return state.device.poll("event", lambda: (recorded,))

    def synchronize(self) -> None:
        """Wait in simulated time until the event is complete; at once if nothing is recorded."""
        if self.recorded is not None:
            running_rank().device.wait(self.recorded)

    def elapsed_time(self, end_event: "Event") -> float:
        """The simulated milliseconds from this event to `end_event`, between the times at which the
        IO_CPU saw them complete.

        `TypeError` for what is no event, `ValueError` for events without `enable_timing` and for
        events that are not recorded, `RuntimeError` for events that are not complete.
        """
        if not isinstance(end_event, Event):  # pyright: ignore[reportUnnecessaryIsInstance] - user code is not type-checked
            raise TypeError(f"expected a torch.ahbm.Event, but got {type(end_event).__name__}")
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.recorded is None or end_event.recorded is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.recorded.done and end_event.recorded.done):
            raise RuntimeError(
                "Both events must be completed before calculating elapsed time. Wait for the later "
                "one with synchronize()."
            )
        return (end_event.recorded.device_done_ps - self.recorded.device_done_ps) / _PS_PER_MS


def _number(stream: StreamNumber | None) -> int:
    """The number of a stream, by default the current one. `TypeError` for what is no stream,
    `RuntimeError` for a stream of another rank.
    """
    state = running_rank()
    if stream is None:
        return state.device.stream
    if not isinstance(getattr(stream, "number", None), int):
        raise TypeError(f"expected a torch.ahbm.Stream, but got {type(stream).__name__}")
    if stream.rank != state.rank:
        raise RuntimeError(f"{stream} is used by rank {state.rank}, which cannot access it")
    return stream.number
