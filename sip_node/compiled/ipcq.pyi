"""Arrivals of slots and of credits at a PE, in C, as Python sees them."""

from collections.abc import Callable, Sequence
from typing import Any

from sip_node.chip.pe.queue_state import QueueState
from sip_node.compiled.calendar import Calendar
from sip_node.compiled.hops import Endpoint

class RingsByAddress:
    def add(self, base: int, queue: QueueState) -> QueueState | None: ...
    def owner(self, address: int) -> QueueState | None: ...

class IpcqArrivals(Endpoint):
    def bind(
        self,
        engine: Calendar,
        context: Any,
        owner: Callable[[RingsByAddress, int], QueueState],
        ready: Callable[[Any], None],
        kinds: tuple[int, int],
        elements: Sequence[str],
    ) -> None: ...
