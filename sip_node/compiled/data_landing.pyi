"""The DATA that a DMA engine has requested, in C, as Python sees it."""

from collections.abc import Callable
from typing import Any

from sip_node.compiled.calendar import Calendar
from sip_node.compiled.hops import Endpoint
from sip_node.compiled.read_window import ReadWindow

class DataLanding(Endpoint):
    def __init__(
        self,
        engine: Calendar,
        port: Any,
        fabric: Any,
        node: int,
        window: ReadWindow,
        landed: Callable[[Any, int], None],
    ) -> None: ...
    def forward(self, write: Any) -> None: ...
