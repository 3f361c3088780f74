"""The memories of the replay: a sparse physical address space with numbers for every byte."""

from collections.abc import Iterator

import numpy as np

from coordinator.verify.elements import Array, pieces
from runtime.core.trace import Operand

PAGE_BYTES = 4096
NO_WRITER = -1
"""The writer of a byte that was never written."""


class PagedArray:
    """An array of type `dtype` over all physical addresses, `fill` where nothing was written.

    Pages are allocated on the first write: the address space has 51 bits.
    """

    def __init__(self, dtype: type[np.generic], fill: int) -> None:
        self._dtype, self._fill = np.dtype(dtype), fill
        self.pages: dict[int, Array] = {}

    def page(self, number: int) -> Array:
        """The numbers of a page, for reading."""
        page = self.pages.get(number)
        return self._blank() if page is None else page

    def write(self, address: int, values: Array | int, count: int) -> None:
        """Set `count` numbers from `address` on."""
        for number, start, done, length in _parts(address, count):
            page = self.pages.get(number)
            if page is None:
                # A write allocates the page, a read never does: reading must not change the set of
                # pages that are compared at the end.
                page = self.pages[number] = self._blank()
            page[start : start + length] = (
                values if isinstance(values, int) else values[done : done + length]
            )

    def read(self, address: int, count: int) -> Array:
        """A copy of `count` numbers from `address` on."""
        parts = [
            self.page(number)[start : start + length]
            for number, start, _, length in _parts(address, count)
        ]
        return (
            parts[0].copy()
            if len(parts) == 1
            else np.concatenate(parts)
            if parts
            else np.empty(0, self._dtype)
        )

    def read_block(self, block: Operand) -> Array:
        """The numbers of the bytes of a block, in row-major order of its elements."""
        parts = [self.read(address, nbytes) for address, nbytes in pieces(block)]
        return (
            parts[0]
            if len(parts) == 1
            else np.concatenate(parts)
            if parts
            else np.empty(0, self._dtype)
        )

    def _blank(self) -> Array:
        return np.full(PAGE_BYTES, self._fill, self._dtype)


class ReplayMemory:
    """The bytes of all memories, and for each byte the operation that wrote it last."""

    def __init__(self) -> None:
        self.bytes = PagedArray(np.uint8, 0)
        # The last writer of each byte gives the buffers to compare, and the operation to blame.
        self.writers = PagedArray(np.int32, NO_WRITER)

    def write_block(self, block: Operand, data: Array, writer: int) -> None:
        """Store the bytes `data` as the elements of a block."""
        done = 0
        for address, nbytes in pieces(block):
            self.bytes.write(address, data[done : done + nbytes], nbytes)
            self.writers.write(address, writer, nbytes)
            done += nbytes

    def writers_of(self, block: Operand) -> list[int]:
        """The operations whose results are in a block, without `NO_WRITER`, in ascending order."""
        # `unique` sorts, so the order does not depend on the layout of the block.
        writers = np.unique(self.writers.read_block(block))
        return [int(writer) for writer in writers if writer != NO_WRITER]


def _parts(address: int, count: int) -> Iterator[tuple[int, int, int, int]]:
    """(page, start in it, numbers before, numbers) of a range."""
    done = 0
    while done < count:
        number, start = divmod(address + done, PAGE_BYTES)
        length = min(PAGE_BYTES - start, count - done)
        yield number, start, done, length
        done += length
