"""The requests of a DMA engine in C, as Python sees them."""

from typing import Any

from sip_node.compiled.calendar import Actor, Calendar

class DmaRequests(Actor):
    busy_ps: int
    nbytes: int
    def bind(
        self,
        engine: Calendar,
        parts: Any,
        context: Any,
        window: Any,
        stream: Any,
        landing: Any,
        overhead_ps: int,
    ) -> None: ...
    @property
    def in_flight(self) -> int: ...
