"""Matrices in memory in C, as Python sees them."""

from collections.abc import Callable
from typing import Any

from runtime.core.dtypes import DType
from runtime.core.trace import Operand

class StreamedTile:
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def pieces(self) -> list[Operand]: ...

class StreamedMatrix:
    def __init__(
        self,
        ref: Any,
        tile: tuple[int, int],
        blocks: Callable[[Any, tuple[int, ...], tuple[int, ...]], list[Operand]],
        layout_of: Callable[[Operand], tuple[int, Any]],
    ) -> None: ...
    def at(self, rows: tuple[int, int], columns: tuple[int, int]) -> StreamedTile: ...
    def blocks(self) -> list[Operand]: ...
