"""The window of a DMA engine in C, as Python sees it."""

from collections.abc import Callable
from typing import Any

from sip_node.compiled.calendar import Actor, Calendar

class ReadWindow(Actor):
    def __init__(
        self,
        engine: Calendar,
        fabric: Any,
        node: int,
        places: int,
        packet_bytes: int,
        control_bytes: int,
    ) -> None: ...
    def begin(self, transfer: Any, sent: Callable[[], None] | None = None) -> None: ...
    def landed(self, time_ps: int) -> None: ...
