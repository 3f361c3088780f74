"""The passage of packets through clocked routers in C, as Python sees it."""

from collections.abc import Callable
from typing import Any

from sip_node.compiled.calendar import Calendar
from sip_node.compiled.clocked_routers import ClockedRouters
from sip_node.compiled.router_parts import SourcePart

class PacketPath:
    def __init__(self, plan: Any, source: SourcePart | None, notified: int) -> None: ...
    @property
    def latency_ps(self) -> int: ...

class CreditedHops(ClockedRouters):
    sent: int
    delivered: int
    records: bool
    def bind(self, engine: Calendar, clock: Any) -> None: ...
    def serve(
        self,
        sip: int,
        find_path: Callable[[Any, int], PacketPath],
        endpoints: dict[int, Any],
        servers: dict[int, Any],
        left: dict[int, Callable[[Any], None]],
        bytes_waiting: dict[int, int],
        send_bounds: Any,
        restores_order: bool,
    ) -> None: ...
    def send(self, packet: Any, origin: int, tail_ps: int) -> None: ...
    def release(self, packet: Any) -> None: ...
