"""The packets of transfers to and from a memory in C, as Python sees them."""

from collections.abc import Callable
from typing import Any

from sip_node.compiled.calendar import Calendar
from sip_node.compiled.hops import Endpoint

class TransferStore:
    keeps_data: bool
    def __init__(self, in_python: Any) -> None: ...

class MemoryPackets(Endpoint):
    on_service: Callable[[Any], None] | None
    def __init__(
        self,
        engine: Calendar,
        fabric: Any,
        node: int,
        base: int,
        service: Any,
        packet_bytes: int,
        latency_ps: int,
        store: Any,
    ) -> None: ...
