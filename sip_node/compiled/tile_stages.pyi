"""The stages of a product's steps in C, as Python sees them."""

from collections.abc import Callable
from typing import Any

from runtime.core.coordinates import PeCoordinates
from sip_node.chip.op_log import OpLog
from sip_node.compiled.calendar import Calendar
from sip_node.compiled.tile_product import TileProducts
from sip_node.compiled.tile_token import Stage

class Slots:
    def __init__(self, count: int) -> None: ...
    @property
    def available(self) -> bool: ...
    @property
    def unused(self) -> bool: ...
    def when_freed(self, callback: Callable[[], None]) -> None: ...
    def take(self) -> int: ...
    def free(self, index: int) -> None: ...

class FetchStage(Stage):
    server: Any
    records: int
    def __init__(
        self,
        engine: Calendar,
        server: Any,
        log: OpLog,
        at: PeCoordinates,
        registers: Any,
        buffers: Slots,
    ) -> None: ...

class GemmStage(Stage):
    free_ps: int
    busy_ps: int
    tiles: int
    macs: int
    stall_dma_ps: int
    stall_fetch_ps: int
    stall_store_ps: int
    def __init__(
        self,
        engine: Calendar,
        log: OpLog,
        at: PeCoordinates,
        registers: Any,
        products: TileProducts | None = None,
    ) -> None: ...
