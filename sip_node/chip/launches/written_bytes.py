"""The operation of a launch that has written, or read, each byte of a memory last."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from runtime.core.trace import Operand
from sip_node.chip.launch_keys import NotRepeated
from sip_node.chip.mapping.strided_block import end_of, layout_of


class WrittenBytes(NamedTuple):
    """Bytes from `begin` to before `end`: those of operation `number`, from byte `offset` of its
    result on.
    """

    begin: int
    end: int
    number: int
    offset: int

    def part(self, begin: int, end: int) -> "WrittenBytes":
        """The part of them from `begin` to before `end`."""
        begin, end = max(begin, self.begin), min(end, self.end)
        return WrittenBytes(begin, end, self.number, self.offset + begin - self.begin)


class WrittenMemory:
    """The bytes of memory that the operations of a launch have written."""

    def __init__(self) -> None:
        # Ranges that do not overlap, and their begins.
        self._begins: list[int] = []
        self._ranges: list[WrittenBytes] = []

    def write(self, block: Operand, number: int) -> None:
        """Operation `number` writes a block."""
        offset = 0
        for begin, nbytes in _runs(block):
            self._write(WrittenBytes(begin, begin + nbytes, number, offset))
            offset += nbytes

    def read(self, block: Operand) -> list[WrittenBytes]:
        """The writers of the bytes from the first to the last one of a block; raises `NotRepeated`
        for a byte of it that no operation has written.
        """
        begin, end = block.address, end_of(block)
        first, behind = self._overlapping(begin, end)
        pieces = [each.part(begin, end) for each in self._ranges[first:behind]]
        if sum(each.end - each.begin for each in pieces) < end - begin:
            for start, nbytes in _runs(block):
                self._check(start, start + nbytes)
        return pieces

    def touched(self, block: Operand) -> set[int]:
        """The operations of which bytes are in a block."""
        begin, end = block.address, end_of(block)
        first, behind = self._overlapping(begin, end)
        if first == behind:
            return set()
        touched = set[int]()
        for start, nbytes in _runs(block):
            first, behind = self._overlapping(start, start + nbytes)
            touched.update(each.number for each in self._ranges[first:behind])
        return touched

    def writers(self) -> set[int]:
        """The operations of which bytes are left."""
        return {each.number for each in self._ranges}

    def _check(self, begin: int, end: int) -> None:
        first, behind = self._overlapping(begin, end)
        pieces = [each.part(begin, end) for each in self._ranges[first:behind]]
        if sum(each.end - each.begin for each in pieces) < end - begin:
            raise NotRepeated("an operand that no operation of the launch has written")

    def _write(self, written: WrittenBytes) -> None:
        begin, end = written.begin, written.end
        first, behind = self._overlapping(begin, end)
        kept = [written]
        if first < behind:
            if self._ranges[first].begin < begin:
                kept.insert(0, self._ranges[first].part(0, begin))
            last = self._ranges[behind - 1]
            if last.end > end:
                kept.append(last.part(end, last.end))
        self._ranges[first:behind] = kept
        self._begins[first:behind] = [each.begin for each in kept]

    def _overlapping(self, begin: int, end: int) -> tuple[int, int]:
        """The places of the ranges that overlap one."""
        first = bisect_right(self._begins, begin)
        if first and self._ranges[first - 1].end > begin:
            first -= 1
        return first, max(first, bisect_left(self._begins, end))


def _runs(block: Operand) -> Iterator[tuple[int, int]]:
    """(address, bytes) of the contiguous parts of a block, in the order of its elements."""
    try:
        nbytes, rows = layout_of(block)
    except ValueError as error:
        raise NotRepeated(str(error)) from None
    if rows is None:
        yield block.address, nbytes
        return
    for offset, count, row_bytes in rows.runs(0, nbytes):
        for row in range(count):
            yield block.address + offset + row * rows.pitch, row_bytes
