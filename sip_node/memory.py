"""The bytes of one modelled memory, kept sparsely: what was never written reads as zero and takes no room."""

from collections.abc import Iterator

PAGE_BYTES = 1 << 16


class Memory:
    """A memory of `nbytes`. In a run without data it keeps nothing and reads nothing."""

    def __init__(self, name: str, nbytes: int, *, data: bool) -> None:
        self.name, self.nbytes = name, nbytes
        self._data = data
        self._pages: dict[int, bytearray] = {}

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store `data` at `offset`."""
        assert 0 <= offset <= self.nbytes - len(data), f"{self.name}: write of {len(data)} bytes at {offset:#x}"
        done = 0
        for page, start, count in _pieces(offset, len(data)):
            if page not in self._pages:
                self._pages[page] = bytearray(PAGE_BYTES)
            self._pages[page][start : start + count] = data[done : done + count]
            done += count

    def read(self, offset: int, nbytes: int) -> bytes:
        """The bytes at `offset`; empty in a run without data."""
        assert 0 <= offset <= self.nbytes - nbytes, f"{self.name}: read of {nbytes} bytes at {offset:#x}"
        if not self._data:
            return b""
        return b"".join(
            bytes(self._pages[page][start : start + count]) if page in self._pages else bytes(count)
            for page, start, count in _pieces(offset, nbytes)
        )

    def contents(self) -> Iterator[tuple[int, bytes]]:
        """(offset, bytes) of every page that is not all zero, in address order."""
        for page in sorted(self._pages):
            if any(self._pages[page]):
                yield page * PAGE_BYTES, bytes(self._pages[page])


def _pieces(offset: int, nbytes: int) -> Iterator[tuple[int, int, int]]:
    """(page, start in page, bytes) of the range."""
    end = offset + nbytes
    while offset < end:
        page, start = divmod(offset, PAGE_BYTES)
        count = min(PAGE_BYTES - start, end - offset)
        yield page, start, count
        offset += count
