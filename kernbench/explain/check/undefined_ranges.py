"""Ranges of bytes that are undefined, each with its origin."""

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from kernbench.explain.check.accesses import Accessor
from kernbench.explain.check.run_calls import CallRow


class UndefinedOrigin(NamedTuple):
    """The origin of undefined bytes: a tensor of a SIP, or a value of a kernel that was made in a
    call (`tensor` is -1). `offset` is the first of them that was read, in bytes from its begin, and
    `read` the call that read it first, None before there is one.
    """

    sip: int
    tensor: int
    call: int
    offset: int = 0
    read: tuple[Accessor, CallRow] | None = None


class UndefinedRange(NamedTuple):
    """Bytes from `begin` on before `end`."""

    begin: int
    end: int
    origin: UndefinedOrigin


class UndefinedRanges:
    """Disjoint ranges, sorted."""

    __slots__ = ("_begins", "_ranges")

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ranges: list[UndefinedRange] = []

    def __bool__(self) -> bool:
        return bool(self._begins)

    def add(self, added: UndefinedRange) -> None:
        """Make bytes undefined."""
        self.remove(added.begin, added.end)
        index = bisect_left(self._begins, added.begin)
        self._begins.insert(index, added.begin)
        self._ranges.insert(index, added)

    def remove(self, begin: int, end: int) -> None:
        """Make bytes defined."""
        first, last = self._between(begin, end)
        if first == last:
            return
        kept = list[UndefinedRange]()
        head, tail = self._ranges[first], self._ranges[last - 1]
        if head.begin < begin:
            kept.append(head._replace(end=begin))
        if tail.end > end:
            kept.append(tail._replace(begin=end))
        self._begins[first:last] = [each.begin for each in kept]
        self._ranges[first:last] = kept

    def within(self, begin: int, end: int) -> list[UndefinedRange]:
        """The parts of ranges among these bytes."""
        first, last = self._between(begin, end)
        return [
            each._replace(begin=max(each.begin, begin), end=min(each.end, end))
            for each in self._ranges[first:last]
        ]

    def _between(self, begin: int, end: int) -> tuple[int, int]:
        """The numbers of the ranges that have a byte of these."""
        first = bisect_right(self._begins, begin) - 1
        if first < 0 or self._ranges[first].end <= begin:
            first += 1
        return first, max(first, bisect_left(self._begins, end))
