"""The stages that store results and write them to memory in C, as Python sees them."""

from collections.abc import Callable
from typing import Any

from runtime.core.coordinates import PeCoordinates
from sip_node.chip.op_log import OpLog
from sip_node.compiled.calendar import Calendar
from sip_node.compiled.tile_token import Stage

class StoreStage(Stage):
    server: Any
    records: int
    def __init__(
        self,
        engine: Calendar,
        server: Any,
        log: OpLog,
        at: PeCoordinates,
        registers: Any,
        buffers: Any,
        tcm: Any,
        memory: Any,
        finish: Callable[[Any, None, None, Any], Any],
    ) -> None: ...

class WriteStage(Stage):
    def __init__(
        self, dma: Any, buffers: Any, write_pieces: Callable[[list[Any], Any, bytes], Any]
    ) -> None: ...
