"""The MMU of a PE: translates virtual addresses by extents, which MmuMapMsg adds.

Extents instead of pages: a tensor is a few extents of any length, one for each part of it that lies
in one memory. Look-ups are binary searches.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from runtime.core.requests import Extent


class PeMmu:
    """The page table of one PE, kept as sorted extents that do not overlap."""

    def __init__(self) -> None:
        self._extents: list[Extent] = []

    def map(self, extents: Sequence[Extent]) -> None:
        """Add mappings. An old one that a new one overlaps is removed: its range is reused."""
        for new in extents:
            # Extents never overlap, so those that the new one overlaps are neighbours in the list.
            first = bisect_right(self._extents, new.virtual, key=_end)
            last = bisect_left(self._extents, _end(new), key=_start)
            self._extents[first:last] = [new]

    def translate(self, address: int, nbytes: int) -> list[tuple[int, int]] | None:
        """(physical address, bytes) of the pieces of a range; None where a byte is not mapped."""
        pieces: list[tuple[int, int]] = []
        while nbytes > 0:
            # Adjacent extents of a tensor may lie in different memories: one piece for each.
            extent = self._at(address)
            if extent is None:
                return None
            offset = address - extent.virtual
            count = min(nbytes, extent.nbytes - offset)
            pieces.append((extent.physical + offset, count))
            address += count
            nbytes -= count
        return pieces

    def tensor_at(self, address: int, physical: int) -> tuple[str, int]:
        """The tensor with a byte at `physical` in a block that begins at virtual `address`, and the
        offset of that byte in the virtual range of the tensor.
        """
        bytes_at = (
            (extent.virtual + physical - extent.physical, extent.tensor)
            for extent in self._extents
            if 0 <= physical - extent.physical < extent.nbytes
        )
        # Mappings of dead tensors remain until their virtual range is used again, so the byte may
        # have other virtual addresses.
        virtual, tensor = min(bytes_at, key=lambda each: (each[0] < address, each[0]))
        base = next(extent.virtual for extent in self._extents if extent.tensor == tensor)
        return tensor, virtual - base

    def nearest(self, address: int) -> str:
        """The tensor below `address`, for the message of a page fault."""
        index = bisect_right(self._extents, address, key=_start) - 1
        if index < 0:
            return "no tensor is mapped below it"
        extent = self._extents[index]
        past = address - extent.virtual - extent.nbytes
        tensor = f"tensor {extent.tensor} at {extent.virtual:#x}+{extent.nbytes}"
        if past < 0:
            return f"it starts inside {tensor} and runs past its end"
        return f"{past} bytes past the end of {tensor}"

    def _at(self, address: int) -> Extent | None:
        index = bisect_right(self._extents, address, key=_start) - 1
        if index < 0:
            return None
        extent = self._extents[index]
        return extent if address < extent.virtual + extent.nbytes else None


def _start(extent: Extent) -> int:
    return extent.virtual


def _end(extent: Extent) -> int:
    return extent.virtual + extent.nbytes
