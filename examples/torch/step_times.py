"""Times of the parts of a training step: those of the device by its events, that of the host."""

from contextlib import ExitStack
from timeit import default_timer

import torch


class StepTimes:
    """Measures one step after the other, and reports the last one.

    `part` begins a part of a step, `end` ends the step. On a device without events, such as the
    CPU, the time of the host is all that is measured.
    """

    def __init__(self, device: str) -> None:
        self._device = torch.get_device_module(device)
        self._has_events = device != "cpu"
        self._marks: list[tuple[str, torch.Event]] = []
        self._wall: list[float] = []
        self._block = ExitStack()
        self._is_open = False

    def part(self, name: str) -> None:
        """Begin a part; the first one begins the step."""
        if not self._is_open:
            self._begin()
        self._mark(name)

    def end(self) -> None:
        """End the step, when the device has completed it."""
        self._mark("")
        self._block.close()
        self._wall[-1] += default_timer()
        self._is_open = False

    def report(self) -> str:
        """The last step, in one line; the time of the host is that of the fastest step."""
        line = f"{min(self._wall):.2f} s a step on the host"
        if not self._has_events:
            return line
        spans = zip(self._marks, self._marks[1:], strict=False)
        parts = [
            f"{name} {first.elapsed_time(last) * 1000:.1f}" for (name, first), (_, last) in spans
        ]
        exposed = self._profile.exposed_communication_ns / 1000
        fallbacks = (self._device.host_fallback_ns() - self._fallbacks_ns) / 1000
        return (
            f"simulated us of a step: {', '.join(parts)}; in these, exposed communication "
            f"{exposed:.1f}, operators on the host {fallbacks:.1f}; {line}"
        )

    def _begin(self) -> None:
        self._is_open = True
        self._marks.clear()
        if self._has_events:
            self._profile = self._block.enter_context(self._device.profile())
            self._fallbacks_ns = self._device.host_fallback_ns()
        self._wall.append(-default_timer())

    def _mark(self, name: str) -> None:
        if self._has_events:
            event = self._device.Event(enable_timing=True)
            event.record()
            self._marks.append((name, event))
