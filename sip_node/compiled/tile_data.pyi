"""Tiles of operands in TCM, in C, as Python sees them."""

from typing import Any

from runtime.core.trace import Operand

class TileData:
    block: Operand
    nbytes: int
    checksum: int
    def __init__(self, block: Operand, nbytes: int, data: Any, checksum: int) -> None: ...
    @property
    def data(self) -> Any: ...
