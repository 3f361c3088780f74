"""Transfers that leave a port packet by packet, in C, as Python sees them."""

from collections.abc import Callable
from typing import Any

from sip_node.compiled.calendar import Actor, Calendar

class EgressStream(Actor):
    def __init__(
        self,
        engine: Calendar,
        port: Any,
        fabric: Any,
        node: int,
        left: Callable[[Any, int], None],
    ) -> None: ...
    def start(self, transfer: Any, packet_bytes: int) -> None: ...
