"""Which operation of a launch has written which bytes of TCM and of registers last."""

from bisect import bisect_left, bisect_right

from sip_node.chip.launches.launch_key import NotRepeated


class LocalBlocks:
    """The ranges of local memory that the operations of a launch have written, by their numbers."""

    def __init__(self) -> None:
        # Ranges that do not overlap, by their begin.
        self._begins: list[int] = []
        self._ranges: list[tuple[int, int, int]] = []

    def write(self, begin: int, end: int, number: int) -> None:
        """Operation `number` writes the bytes from `begin` to before `end`."""
        first, behind = self._overlapping(begin, end)
        kept = list[tuple[int, int, int]]()
        for start, stop, writer in self._ranges[first:behind]:
            if start < begin:
                kept.append((start, begin, writer))
            if stop > end:
                kept.append((end, stop, writer))
        kept.append((begin, end, number))
        kept.sort()
        self._ranges[first:behind] = kept
        self._begins[first:behind] = [each[0] for each in kept]

    def writer(self, begin: int, end: int) -> int:
        """The operation that has written all bytes of a range; raises `NotRepeated` if none has."""
        first, behind = self._overlapping(begin, end)
        if behind - first == 1:
            start, stop, writer = self._ranges[first]
            if start <= begin and end <= stop:
                return writer
        raise NotRepeated("an operand that several operations have written, or none")

    def writers(self) -> set[int]:
        """The operations of which bytes are left."""
        return {writer for _, _, writer in self._ranges}

    def _overlapping(self, begin: int, end: int) -> tuple[int, int]:
        """The places of the ranges that overlap one."""
        first = bisect_right(self._begins, begin)
        if first and self._ranges[first - 1][1] > begin:
            first -= 1
        return first, max(first, bisect_left(self._begins, end))
