"""The blocks of memory that operations of a kernel in flight read or write.

An operation is in flight from its start until the kernel has waited for it: not until its end in
simulated time, so that a kernel is right or wrong by its text, on every machine and in the mock
runtime. A command must not read bytes that an operation in flight writes, nor write bytes that one
reads or writes: which of the two comes first would depend on contention.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from runtime.core.strided_axes import descriptor_axes
from runtime.language.value import Array, Pointer, Ref, Shape, span_bytes

BARRIER = "tl.barrier"


class UsedBlock(NamedTuple):
    """Elements of `shape` behind a pointer; `strides` count elements."""

    pointer: Pointer
    shape: Shape
    strides: tuple[int, ...]

    @classmethod
    def of(cls, matrix: Ref) -> "UsedBlock":
        """The block of a matrix in memory; the tiles of a blocked one lie in it without gaps."""
        strides = (matrix.shape[1], 1) if matrix.blocked else matrix.strides
        return cls(matrix.pointer, matrix.shape, strides)

    @property
    def extent(self) -> tuple[int, int]:
        """The address of the first byte, and that behind the last one; equal if it is empty."""
        pointer = self.pointer
        end = pointer.address + span_bytes(self.shape, self.strides, pointer.dtype)
        return pointer.address, end

    def shares_bytes(self, other: "UsedBlock") -> bool:
        """Whether a byte belongs to both blocks."""
        (start, end), (first, behind) = self.extent, other.extent
        if end <= first or behind <= start or start == end or first == behind:
            return False
        if self._between_rows_of(other, first - start):
            return False
        (rows, row_bytes), (others, other_bytes) = map(_rows, (self, other))
        # Rows of a block are equally long and do not overlap, so of those which start before the
        # end of a row the last one reaches farthest.
        before = np.searchsorted(others, rows + row_bytes, side="left") - 1
        return bool(np.any((before >= 0) & (others[before] + other_bytes > rows)))

    def _between_rows_of(self, other: "UsedBlock", distance: int) -> bool:
        """Whether rows at one pitch, such as column panels of a matrix, lie between the others.

        `other` starts `distance` bytes behind this block.
        """
        axes, others = (descriptor_axes(each.shape, each.strides) for each in (self, other))
        item, other_item = self.pointer.dtype.itemsize, other.pointer.dtype.itemsize
        if not len(axes) == len(others) == 2:
            return False
        pitch = axes[0][1] * item
        if others[0][1] * other_item != pitch:
            return False
        behind = distance % pitch
        return behind >= axes[1][0] * item and behind + others[1][0] * other_item <= pitch


class MemoryUse(NamedTuple):
    """Blocks that the operation `name` at `line` of the kernel reads and writes."""

    name: str
    line: str
    reads: Sequence[UsedBlock] = ()
    writes: Sequence[UsedBlock] = ()


class _UsedSpan(NamedTuple):
    """The bytes that an operation in flight spans, number `number` of those that have started."""

    start: int
    number: int
    end: int
    use: MemoryUse


class MemoryInFlight:
    """The uses of memory by the operations of a kernel that are in flight."""

    def __init__(self) -> None:
        self._uses: dict[object, _UsedSpan] = {}
        # By what all blocks of a use span, the longest of which has `_longest` bytes: a command is
        # compared with the few that may share bytes with it.
        self._spans: list[_UsedSpan] = []
        self._longest = self._started = 0

    def begin(self, operation: object, use: MemoryUse) -> None:
        """An operation has started."""
        start, end = _span((*use.reads, *use.writes))
        self._started += 1
        self._uses[operation] = span = _UsedSpan(start, self._started, end, use)
        insort(self._spans, span)
        self._longest = max(self._longest, end - start)

    def end(self, operation: object) -> None:
        """The kernel has waited for an operation, perhaps not the first time."""
        span = self._uses.pop(operation, None)
        if span is not None:
            del self._spans[bisect_left(self._spans, span)]

    def line_of(self, operation: object) -> str:
        """The line of the kernel that started an operation in flight; empty for one without blocks
        of memory.
        """
        span = self._uses.get(operation)
        return "" if span is None else span.use.line

    def unordered(self) -> str | None:
        """Why a barrier orders no stores now: the operation in flight that writes; else None."""
        for *_, use in self._uses.values():
            if use.writes:
                return (
                    f"{BARRIER}: the {use.name} at {use.line} is in flight, and other PEs may use "
                    "behind the barrier what it writes: tl.wait for it before"
                )
        return None

    def problem(
        self, name: str, reads: Sequence[UsedBlock] = (), writes: Sequence[UsedBlock] = ()
    ) -> str | None:
        """The error in the command `name`, which uses these blocks; None if there is none."""
        if not self._uses or not (reads or writes):
            return None
        for use in self._near(*_span((*reads, *writes))):
            if _share(reads, use.writes):
                verbs = "reads", "writes"
            elif _share(writes, use.writes):
                verbs = "writes", "writes"
            elif _share(writes, use.reads):
                verbs = "writes", "reads"
            else:
                continue
            mine, theirs = verbs
            return (
                f"{name} {mine} bytes of memory that the {use.name} at {use.line} {theirs}; that "
                "is in flight until the kernel waits for it, and either may come first: tl.wait "
                "for it before"
            )
        return None

    def _near(self, first: int, behind: int) -> list[MemoryUse]:
        """The uses that span bytes from `first` on before `behind`, in the order of the starts."""
        low = bisect_left(self._spans, (first - self._longest + 1,))
        high = bisect_left(self._spans, (behind,))
        if low >= high:
            return []
        near = [(each.number, each.use) for each in self._spans[low:high] if each.end > first]
        return [use for _, use in sorted(near, key=itemgetter(0))]


def _span(blocks: Sequence[UsedBlock]) -> tuple[int, int]:
    """The address of the first byte of all blocks, and that behind the last one."""
    if len(blocks) == 1:
        return blocks[0].extent
    extents = [block.extent for block in blocks]
    return min((start for start, _ in extents), default=0), max(
        (end for _, end in extents), default=0
    )


def _share(blocks: Sequence[UsedBlock], others: Sequence[UsedBlock]) -> bool:
    return any(block.shares_bytes(other) for block in blocks for other in others)


def _rows(block: UsedBlock) -> tuple[Array, int]:
    """The addresses of the rows in ascending order, and the bytes of each."""
    item = block.pointer.dtype.itemsize
    *outer, (columns, _) = descriptor_axes(block.shape, block.strides)
    starts = np.zeros(1, np.int64)
    for length, stride in outer:
        starts = (starts[:, None] + np.arange(length) * (stride * item)).reshape(-1)
    return np.sort(starts) + block.pointer.address, columns * item
