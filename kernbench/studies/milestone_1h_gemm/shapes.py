"""Which products the study simulates: shapes (m, k) times (k, n), each with its operands staged in three ways."""

import re
from enum import StrEnum
from typing import NamedTuple

from runtime.core.dtypes import float16
from runtime.core.errors import UsageError
from runtime.model.tiles import TilePlan, TileSize

DTYPE = float16
"""Of both operands and of the result."""
DEFAULT = "16x32x16,32x32x32,128x128x128,512x512x512,1024x128x64,64x128x1024,64x4096x64,200x200x200"
"""Two below one tile, two cubes, a tall, a wide and a deep one, and one that no tile divides.

A loaded operand lives in kernel scratch; none of these needs more than the smallest scratch there is, 1 MiB.
"""
_SHAPE = re.compile(r"([1-9]\d{0,5})x([1-9]\d{0,5})x([1-9]\d{0,5})")


class Shape(NamedTuple):
    """(m, k) times (k, n)."""

    m: int
    k: int
    n: int

    def __str__(self) -> str:
        return f"{self.m}x{self.k}x{self.n}"

    def plan(self, tile: TileSize) -> TilePlan:
        """The steps of the GEMM engine."""
        return TilePlan(self.m, self.k, self.n, tile)

    def under(self, tile: TileSize) -> bool:
        """Whether a side is shorter than the tile's: then no step fills the engine."""
        return any(side < full for side, full in zip(self, tile, strict=True))


class Staging(StrEnum):
    """How the operands reach the GEMM engine, A before B: streamed by the scheduler, or loaded to TCM as a whole before."""

    REF_REF = "ref_ref"
    LOAD_REF = "load_ref"
    LOAD_LOAD = "load_load"

    @property
    def loads_a(self) -> bool:
        """Whether A is loaded."""
        return self is not Staging.REF_REF

    @property
    def loads_b(self) -> bool:
        """Whether B is loaded."""
        return self is Staging.LOAD_LOAD

    @property
    def loads(self) -> int:
        """How many operands are loaded."""
        return self.loads_a + self.loads_b

    def loaded_bytes(self, shape: Shape) -> int:
        """What the loaded operands take of the kernel's scratch."""
        return (
            self.loads_a * shape.m * shape.k + self.loads_b * shape.k * shape.n
        ) * DTYPE.itemsize


def parse_shapes(text: str) -> tuple[Shape, ...]:
    """The shapes in `MxKxN,MxKxN,...`; raises `UsageError` for anything else, and for a shape that is named twice."""
    shapes: list[Shape] = []
    for word in text.split(","):
        found = _SHAPE.fullmatch(word.strip())
        if found is None:
            raise UsageError(
                f"--shapes: expected MxKxN with sides from 1 to 999999, got {word.strip()!r}"
            )
        shape = Shape(*map(int, found.groups()))
        if shape in shapes:
            raise UsageError(f"--shapes: {shape} is named twice")
        shapes.append(shape)
    return tuple(shapes)
