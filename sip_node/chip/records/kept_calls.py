"""The rows of the calls of a launch that is repeated, with the places of its blocks."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from runtime.core.run_tables import BLOCKS

IN_TCM, IN_MEMORY = 0, 1
"""The places of a block: a value of a kernel, or behind a pointer."""


class KeptCalls(NamedTuple):
    """The packed rows of a launch, whose first call had the number `first`; `begun` calls have
    begun.
    """

    calls: bytes
    blocks: bytes
    first: int
    begun: int

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return len(self.calls) + len(self.blocks)

    def extents(self, begins: Sequence[int]) -> list[int]:
        """The extent of each block, by its index in `begins`, their physical addresses; -1 for a
        value in TCM.
        """
        order = sorted(range(len(begins)), key=begins.__getitem__)
        rising = [begins[index] for index in order]
        extents = list[int]()
        for _, _, place, address, *_ in BLOCKS.packer.iter_unpack(self.blocks):
            extent = order[bisect_right(rising, address) - 1] if place == IN_MEMORY else -1
            extents.append(extent)
        return extents
