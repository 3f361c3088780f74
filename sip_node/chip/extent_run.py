"""A run of extents: what one mapping adds to the page tables of PEs.

PEs that map the same parts of a tensor share one run, with its index by address: a tensor on 128
PEs has 128 extents, which each of these PEs maps.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from runtime.core.requests import Extent


class ExtentRun:
    """Extents in rising order that do not overlap, from `begin` to `end`."""

    __slots__ = ("_starts", "begin", "end", "extents")

    def __init__(self, extents: Sequence[Extent]) -> None:
        assert all(one.end <= next_one.virtual for one, next_one in pairwise(extents)), (
            "the extents of a mapping rise and do not overlap"
        )
        self.extents = extents
        self._starts = [extent.virtual for extent in extents]
        # An empty tensor has no extents.
        self.begin, self.end = (extents[0].virtual, extents[-1].end) if extents else (0, 0)

    def below(self, address: int) -> Extent | None:
        """The last extent that begins at or below `address`."""
        index = bisect_right(self._starts, address) - 1
        return None if index < 0 else self.extents[index]

    def at(self, address: int) -> Extent | None:
        """The extent that contains `address`."""
        extent = self.below(address)
        return extent if extent is not None and address < extent.end else None

    def replacing(self, older: Iterable["ExtentRun"]) -> "ExtentRun":
        """This run, with the extents of older runs that it does not overlap."""
        kept = [each for run in older for each in run.extents if not self._overlaps(each)]
        if not kept:
            return self
        return ExtentRun(sorted((*kept, *self.extents), key=lambda each: each.virtual))

    def _overlaps(self, extent: Extent) -> bool:
        index = bisect_left(self._starts, extent.end) - 1
        return index >= 0 and self.extents[index].end > extent.virtual
