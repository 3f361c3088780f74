"""The products of the study: shapes (m, k) times (k, n), and three stagings of the operands."""

import re
from enum import StrEnum
from typing import NamedTuple

from runtime.core.dtypes import float16
from runtime.core.errors import UsageError
from runtime.model.tiles import TilePlan, TileSize

DTYPE = float16
"""Of both operands and of the result."""
_SHAPE = re.compile(r"([1-9]\d{0,5})x([1-9]\d{0,5})x([1-9]\d{0,5})")


class ProductShape(NamedTuple):
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
    """How the operands A and B reach the GEMM engine.

    `ref`: streamed tile by tile by the scheduler; `load`: loaded to TCM as a whole before the
    product.
    """

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
        """Number of loaded operands."""
        return self.loads_a + self.loads_b

    def loaded_bytes(self, shape: ProductShape) -> int:
        """Bytes of the loaded operands in the kernel's scratch."""
        elements = self.loads_a * shape.m * shape.k + self.loads_b * shape.k * shape.n
        return elements * DTYPE.itemsize


def parse_shapes(text: str) -> tuple[ProductShape, ...]:
    """The shapes in `MxKxN,MxKxN,...`; `UsageError` for any other text and for duplicates."""
    shapes: list[ProductShape] = []
    # In the order given, which is the order of the rows.
    for part in text.split(","):
        found = _SHAPE.fullmatch(part.strip())
        if found is None:
            raise UsageError(
                f"--shapes: expected MxKxN with sides from 1 to 999999, got {part.strip()!r}"
            )
        shape = ProductShape(*map(int, found.groups()))
        # Two equal points would be one key of the rows.
        if shape in shapes:
            raise UsageError(f"--shapes: {shape} is named twice")
        shapes.append(shape)
    return tuple(shapes)
