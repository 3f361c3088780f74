"""Tiles of operands in TCM, and the sums in accumulators: the arithmetic of the GEMM engine."""

from zlib import crc32

import numpy as np

from runtime.core.dtypes import DType
from runtime.core.trace import Operand
from runtime.language.gemm import accumulate
from runtime.language.value import Array


class TileData:
    """A tile in TCM, with the CRC-32 of its elements; `data` is None in a run without data.

    `inputs` is the block alone, as records have it.
    """

    __slots__ = ("checksum", "data", "element", "inputs", "nbytes", "shape")

    def __init__(
        self, inputs: tuple[Operand], nbytes: int, data: Array | None, checksum: int
    ) -> None:
        self.inputs, self.nbytes, self.data, self.checksum = inputs, nbytes, data, checksum
        self.shape, self.element = inputs[0].shape, inputs[0].dtype


class TileSums:
    """The sums of an output tile: `data` is None while they are zeros, and without data."""

    __slots__ = ("data", "shape")

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.data: Array | None = None

    def add(self, a: TileData, b: TileData) -> None:
        """Add the product of two tiles."""
        if a.data is not None and b.data is not None:
            self.data = accumulate(self.data, a.data, b.data)

    def checksum(self) -> int:
        """The CRC-32 of the sums, 0 without data."""
        return 0 if self.data is None else crc32(self.data.tobytes())


def loaded_tile(
    inputs: tuple[Operand], dtype: DType, nbytes: int, content: bytes, checksum: int
) -> TileData:
    """The tile of these bytes, which are empty in a run without data."""
    data = np.ndarray(inputs[0].shape, dtype.numpy, content) if content else None
    return TileData(inputs, nbytes, data, checksum)


def cut_tile(
    block: Operand, dtype: DType, nbytes: int, data: Array | None, row: int, column: int
) -> TileData:
    """The tile that begins at (row, column) of a matrix with elements `data`, without gaps."""
    if data is None:
        return TileData((block,), nbytes, None, 0)
    height, width = block.shape
    content = data[row : row + height, column : column + width].tobytes()
    return loaded_tile((block,), dtype, nbytes, content, crc32(content))
