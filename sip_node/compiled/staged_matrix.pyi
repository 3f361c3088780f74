"""Matrices in TCM in C, as Python sees them."""

from typing import Any

from sip_node.compiled.tile_data import TileData

class StagedMatrix:
    def __init__(self, value: Any) -> None: ...
    def at(self, rows: tuple[int, int], columns: tuple[int, int]) -> TileData: ...
