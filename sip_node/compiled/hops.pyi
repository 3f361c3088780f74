"""The traversal of routes in C, as Python sees it."""

from collections.abc import Callable, Sequence
from typing import Any

from sip_node.compiled.calendar import Actor, Calendar

class Endpoint(Actor):
    def accept(self, packet: Any, tail_ps: int) -> None: ...

class Hops(Actor):
    sent: int
    delivered: int
    records: bool
    def bind(
        self,
        engine: Calendar,
        find_stages: Callable[[int, int], Any],
        servers: Sequence[Any],
        endpoints: dict[int, Any],
        sip: int,
        gateway: int,
        send_bounds: Any,
    ) -> None: ...
    def send(self, packet: Any, origin: int, tail_ps: int) -> None: ...
