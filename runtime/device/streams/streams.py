"""Streams of the device: what is in one stream runs in order, streams run side by side.

Launches, copies and events are commands of the current stream. A command of one stream waits for
one of another only if both use a common tensor or a common PE, or if the program orders it
(`wait_event`, `wait_stream`).
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Self

from runtime.core.device import DEFAULT_STREAM
from runtime.device.rank.rank_state import running_rank
from runtime.device.streams.device import check_device
from runtime.device.streams.events import Event


class Stream:
    """A stream of a device: `number` on the device of `rank`."""

    def __init__(self, device: object = None) -> None:
        """Make a new stream of this rank's device; `RuntimeError` for another device."""
        check_device("Stream", device)
        state = running_rank()
        self.rank, self.number = state.rank, state.device.new_stream()
        # From here on commands hold their tensors.
        state.has_streams = True
        self._outer: list[Stream] = []

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.rank, self.number) == (other.rank, other.number)

    def __hash__(self) -> int:
        return hash((self.rank, self.number))

    def __repr__(self) -> str:
        """The device and the number of the stream; 0 is the default stream."""
        return f"<torch.ahbm.Stream device=ahbm:{self.rank} stream={self.number}>"

    def __enter__(self) -> Self:
        """Make it the current stream until the end of the `with` block."""
        self._outer.append(current_stream())
        set_stream(self)
        return self

    def __exit__(self, *_: object) -> None:
        set_stream(self._outer.pop())

    def wait_event(self, event: Event) -> None:
        """Later commands of this stream wait for what the event has recorded, if anything."""
        event.wait(self)

    def wait_stream(self, stream: "Stream") -> None:
        """Later commands of this stream wait for the commands that `stream` has now."""
        running_rank().device.order_after_stream(_own(self).number, _own(stream).number)

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, by default a new one, behind the commands of this stream."""
        recorded = Event() if event is None else event
        recorded.record(self)
        return recorded

    def synchronize(self) -> None:
        """Wait in simulated time until the commands of this stream are complete."""
        running_rank().device.synchronize(_own(self).number)

    def query(self) -> bool:
        """Whether all commands of this stream are complete. A loop around it lets simulated time
        pass: a repeated call waits for the next answer of the device.
        """
        device, number = running_rank().device, _own(self).number
        return device.poll("stream", lambda: device.latest(number))


class _ExistingStream(Stream):
    """A stream that the device has already."""

    def __init__(self, number: int) -> None:
        self.rank, self.number, self._outer = running_rank().rank, number, []


def current_stream(device: object = None) -> Stream:
    """The stream that takes the commands of this rank now."""
    check_device("current_stream", device)
    return _ExistingStream(running_rank().device.stream)


def default_stream(device: object = None) -> Stream:
    """The stream that is current at the start of a program."""
    check_device("default_stream", device)
    return _ExistingStream(DEFAULT_STREAM)


def set_stream(stream: Stream | None) -> None:
    """Make `stream` the current stream; None changes nothing."""
    if stream is not None:
        running_rank().device.stream = _own(stream).number


@contextmanager
def stream(stream: Stream | None) -> Generator[None]:
    """Make a stream the current one in a `with` block; None changes nothing."""
    outer = current_stream()
    set_stream(stream)
    try:
        yield
    finally:
        set_stream(outer)


def _own(stream: object) -> Stream:
    """`TypeError` for what is no stream, `RuntimeError` for a stream of another rank."""
    if not isinstance(stream, Stream):
        raise TypeError(f"expected a torch.ahbm.Stream, but got {type(stream).__name__}")
    if stream.rank != running_rank().rank:
        raise RuntimeError(
            f"{stream} is used by rank {running_rank().rank}, which cannot access it"
        )
    return stream
