"""Functions that the C++ part of the device calls for `torch.Stream`, `torch.Event`,
`torch.accelerator` and the autograd engine. Streams are numbers here.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from kernbench.torch_backend.runtime.device_memory import (
    empty_cache,
    mem_get_info,
    memory_statistics,
    reset_peak_memory_stats,
)
from runtime.core.device import Handle
from runtime.device.ahbm import synchronize
from runtime.device.rank.rank_state import running_rank
from runtime.device.streams.events import Event

__all__ = [
    "block_on_event",
    "current_number",
    "empty_cache",
    "exchange_number",
    "mem_get_info",
    "memory_statistics",
    "new_event",
    "new_number",
    "query_number",
    "record_event",
    "recorded_as",
    "reset_peak_memory_stats",
    "synchronize",
    "synchronize_number",
]


def current_number() -> int:
    """The current stream."""
    return running_rank().device.stream


def exchange_number(number: int) -> int:
    """Make a stream the current one; returns the former one."""
    device = running_rank().device
    before, device.stream = device.stream, number
    return before


def new_number() -> int:
    """Make a stream."""
    state = running_rank()
    # From here on commands hold their tensors.
    state.has_streams = True
    return state.device.new_stream()


def query_number(number: int) -> bool:
    """Whether all commands of a stream are complete; a repeated call lets simulated time pass."""
    device = running_rank().device
    return device.poll("stream", lambda: device.latest(number))


def synchronize_number(number: int) -> None:
    """Wait in simulated time until the commands of a stream are complete."""
    running_rank().device.synchronize(number)


def new_event() -> Event:
    """An event; PyTorch itself refuses the time of one that was made without timing."""
    return Event(enable_timing=True)


_recorded: ContextVar[Handle | None] = ContextVar("_recorded", default=None)


@contextmanager
def recorded_as(command: Handle) -> Generator[None]:
    """Events that PyTorch records in the block are the end of a command, and no new ones."""
    token = _recorded.set(command)
    try:
        yield
    finally:
        _recorded.reset(token)


def record_event(event: Event, number: int) -> None:
    """Record an event behind the commands of a stream."""
    command = _recorded.get()
    if command is None:
        command = running_rank().device.submit([], "an event", stream=number)
    event.recorded = command


def block_on_event(event: Event, number: int) -> None:
    """Later commands of a stream wait for an event."""
    if event.recorded is not None:
        running_rank().device.order_after(number, (event.recorded,))
