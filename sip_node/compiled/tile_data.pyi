"""Tiles of operands in C, as Python sees them."""

from typing import Any

from runtime.core.dtypes import DType
from runtime.core.trace import Operand

class TileData:
    block: Operand
    nbytes: int
    checksum: int
    def __init__(self, block: Operand, nbytes: int, data: Any, checksum: int) -> None: ...
    @property
    def data(self) -> Any: ...

class StreamedTile:
    shape: tuple[int, int]
    dtype: DType
    nbytes: int
    pieces: list[Operand]
    def __init__(
        self, shape: tuple[int, int], dtype: DType, nbytes: int, pieces: list[Operand]
    ) -> None: ...
