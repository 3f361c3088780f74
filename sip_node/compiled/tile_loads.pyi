"""The stage that loads the operands of steps in C, as Python sees it."""

from collections.abc import Callable
from typing import Any

from sip_node.compiled.calendar import Calendar
from sip_node.compiled.tile_token import Stage

class LoadStage(Stage):
    def __init__(
        self,
        engine: Calendar,
        dma: Any,
        addresses: list[tuple[int, int]],
        data_of: Callable[[Any, Any, bytes], Any],
        read_pieces: Callable[[Any, Any, Any], None],
    ) -> None: ...
