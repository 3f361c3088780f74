"""The bytes of one modelled memory, sparse: bytes that were never written read as zero.

The first write to a page allocates it, so a slice of several GB takes only what a program uses.
"""

from collections.abc import Iterator

import numpy as np

from sip_node.chip.mapping.strided_block import StridedBlock

PAGE_BYTES = 1 << 16


class Memory:
    """A memory of `nbytes`. In a run without data it keeps nothing and reads return nothing."""

    def __init__(self, name: str, nbytes: int, *, data: bool) -> None:
        self.name, self.nbytes = name, nbytes
        self.keeps_data = data
        self._pages: dict[int, bytearray] = {}

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store `data` at `offset`."""
        assert 0 <= offset <= self.nbytes - len(data), (
            f"{self.name}: write of {len(data)} bytes at {offset:#x}"
        )
        start, written = offset % PAGE_BYTES, 0
        if start + len(data) <= PAGE_BYTES:
            # Most writes lie in one page.
            self._page(offset // PAGE_BYTES)[start : start + len(data)] = data
            return
        for page, start, count in _pieces(offset, len(data)):
            self._page(page)[start : start + count] = data[written : written + count]
            written += count

    def read(self, offset: int, nbytes: int) -> bytes:
        """The bytes at `offset`; empty in a run without data."""
        assert 0 <= offset <= self.nbytes - nbytes, (
            f"{self.name}: read of {nbytes} bytes at {offset:#x}"
        )
        if not self.keeps_data:
            return b""
        start = offset % PAGE_BYTES
        if start + nbytes <= PAGE_BYTES:
            # Most reads lie in one page.
            page = self._pages.get(offset // PAGE_BYTES)
            return bytes(nbytes) if page is None else bytes(page[start : start + nbytes])
        return b"".join(
            bytes(self._pages[page][start : start + count]) if page in self._pages else bytes(count)
            for page, start, count in _pieces(offset, nbytes)
        )

    def write_rows(
        self, offset: int, rows: StridedBlock, begin: int, data: bytes | memoryview
    ) -> None:
        """Scatter `data`, the packed bytes from `begin` on, to rows whose first is at `offset`."""
        written = 0
        for start, count, row_bytes in _within_pages(offset, rows, begin, len(data)):
            nbytes = count * row_bytes
            if count == 1:
                self.write(start, data[written : written + nbytes])
            else:
                # Rows inside one page are one copy in numpy, not one for each row in Python.
                page = self._page(start // PAGE_BYTES)
                packed = np.frombuffer(data, np.uint8, nbytes, written).reshape(count, row_bytes)
                _grid(page, start, count, rows)[:] = packed
            written += nbytes

    def read_rows(self, offset: int, rows: StridedBlock, begin: int, nbytes: int) -> bytes:
        """Gather the packed bytes [begin, begin + nbytes) of rows whose first is at `offset`.

        Empty in a run without data.
        """
        if not self.keeps_data:
            return b""
        pieces: list[bytes] = []
        for start, count, row_bytes in _within_pages(offset, rows, begin, nbytes):
            if count == 1:
                pieces.append(self.read(start, row_bytes))
            elif start // PAGE_BYTES in self._pages:
                pieces.append(_grid(self._pages[start // PAGE_BYTES], start, count, rows).tobytes())
            else:
                pieces.append(bytes(count * row_bytes))
        return b"".join(pieces)

    def contents(self) -> Iterator[tuple[int, bytearray]]:
        """(offset, bytes) of every page that is not all zero, in address order; not copied."""
        for page in sorted(self._pages):
            if any(self._pages[page]):
                yield page * PAGE_BYTES, self._pages[page]

    def _page(self, page: int) -> bytearray:
        content = self._pages.get(page)
        if content is None:
            content = self._pages[page] = bytearray(PAGE_BYTES)
        return content


def _pieces(offset: int, nbytes: int) -> Iterator[tuple[int, int, int]]:
    """(page, start in page, bytes) of the range."""
    end = offset + nbytes
    while offset < end:
        page, start = divmod(offset, PAGE_BYTES)
        count = min(PAGE_BYTES - start, end - offset)
        yield page, start, count
        offset += count


def _within_pages(
    offset: int, rows: StridedBlock, begin: int, nbytes: int
) -> Iterator[tuple[int, int, int]]:
    """(offset, rows, bytes of each) of runs of rows inside one page; a row across pages is one."""
    for start, count, row_bytes in rows.runs(begin, nbytes):
        address, left = offset + start, count
        while left:
            # Rows fit as long as the last one ends in this page; negative if not even one does.
            room = PAGE_BYTES - address % PAGE_BYTES - row_bytes
            fit = left if rows.pitch == 0 else min(room // rows.pitch + 1, left)
            taken = fit if room >= 0 else 1
            yield address, taken, row_bytes
            address, left = address + taken * rows.pitch, left - taken


def _grid(
    page: bytearray, offset: int, count: int, rows: StridedBlock
) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Whole rows inside a page, as a view of the page itself."""
    return np.ndarray((count, rows.row_bytes), np.uint8, page, offset % PAGE_BYTES, (rows.pitch, 1))
