"""The stages of a product's steps in C, as Python sees them."""

from typing import Any

from runtime.core.coordinates import PeCoordinates
from sip_node.chip.op_log import OpLog
from sip_node.chip.pe.tile_buffers import FreeList
from sip_node.compiled.calendar import Calendar
from sip_node.compiled.tile_product import TileProducts
from sip_node.compiled.tile_token import Stage

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
        buffers: FreeList,
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
