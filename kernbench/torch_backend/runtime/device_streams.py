"""Streams and events of the device, as PyTorch's own classes have them.

They are those of the low level. A stream is a `torch.Stream` as well, whose `stream_id` is its
number: `record_stream`, `torch.accelerator` and the autograd engine take it.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Self

import torch

from kernbench.torch_backend.runtime.pytorch_api import DEVICE, StreamBase
from runtime.device.rank.rank_state import running_rank
from runtime.device.streams import events, streams
from runtime.device.streams.device import check_device

PRIVATE_USE = 20
"""The number of the device's type in PyTorch, `c10::DeviceType::PrivateUse1`."""


def own_index(function: str, device: Any) -> int | None:
    """The number of a device; `ValueError` for one of another type, `RuntimeError` for the device
    of another rank.
    """
    if device is None or isinstance(device, int):
        index = device
    else:
        named = torch.device(device)
        if named.type != DEVICE:
            raise ValueError(f"{function}: expected a device {DEVICE!r}, got {str(named)!r}")
        index = named.index
    check_device(function, index)
    return index


class DeviceEvent(events.Event):
    """A point in a stream. The wait of `synchronize` has no other form: `blocking` has no effect.
    An event belongs to its rank: `interprocess` is refused.
    """

    def __init__(
        self,
        enable_timing: bool = False,  # noqa: FBT001, FBT002 - as in PyTorch
        blocking: bool = False,  # noqa: FBT001, FBT002
        interprocess: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """`ValueError` for `interprocess`."""
        del blocking
        if interprocess:
            raise ValueError(
                f"an event of {DEVICE!r} with interprocess: ranks are ordered by collectives and "
                "messages, not by events of other ranks"
            )
        super().__init__(enable_timing)

    def record(self, stream: torch.Stream | events.StreamNumber | None = None) -> None:
        """Record the event behind the commands of `stream`, by default the current stream."""
        super().record(own_stream(stream))

    def wait(self, stream: torch.Stream | events.StreamNumber | None = None) -> None:
        """Later commands of `stream`, by default the current one, wait for the event."""
        super().wait(own_stream(stream))


class DeviceStream(streams.Stream, StreamBase):
    """A stream of this rank's device. All streams have one priority; the argument is accepted, as
    PyTorch's FSDP passes it. With `number`, a stream that the device has already.
    """

    def __new__(cls, device: Any = None, priority: int = 0, *, number: int | None = None) -> Self:
        """`RuntimeError` for a device of another rank."""
        del priority
        own_index("Stream", device)
        state = running_rank()
        if number is None:
            number = state.device.new_stream()
            # From here on commands hold their tensors.
            state.has_streams = True
        return super().__new__(
            cls, stream_id=number, device_index=state.rank, device_type=PRIVATE_USE
        )

    def __init__(self, device: Any = None, priority: int = 0, *, number: int | None = None) -> None:
        del device, priority, number
        self.rank, self.number, self._outer = self.device_index, self.stream_id, []

    def wait_stream(self, stream: torch.Stream | streams.Stream) -> None:
        """Later commands of this stream wait for the commands that `stream` has now."""
        super().wait_stream(own_stream(stream))

    def record_event(self, event: Any = None) -> Any:
        """Record an event, by default a new one, behind the commands of this stream."""
        return super().record_event(DeviceEvent() if event is None else event)


def own_stream(stream: Any) -> Any:
    """A stream of PyTorch's base class as one of the device; anything else unchanged."""
    if isinstance(stream, torch.Stream) and not isinstance(stream, DeviceStream):
        return DeviceStream(number=stream.stream_id)
    return stream


def current_stream(device: Any = None) -> DeviceStream:
    """The stream that takes the commands of this rank now."""
    own_index("current_stream", device)
    return DeviceStream(number=running_rank().device.stream)


def default_stream(device: Any = None) -> DeviceStream:
    """The stream that is current at the start of a program."""
    own_index("default_stream", device)
    return DeviceStream(number=streams.default_stream().number)


def set_stream(stream: torch.Stream | None) -> None:
    """Make `stream` the current stream; None changes nothing."""
    streams.set_stream(own_stream(stream))


@contextmanager
def stream(given: torch.Stream | None) -> Generator[None]:
    """Make a stream the current one in a `with` block; None changes nothing."""
    with streams.stream(own_stream(given)):
        yield
