"""The slots into which a chunk of a gathered operand is cut, one for each PE of a cube.

A slot lies along the free axis where that is the axis of rows in memory: some whole rows, or a
piece of a row where rows are fewer than PEs. Else, and of a single row, it is a range of the depth.
"""

from typing import NamedTuple

from runtime.device.products.product_plan import divided
from runtime.model.placement import Span


class GatherSlot(NamedTuple):
    """A slot of a chunk: the ranges of the free axis and of the depth that a PE copies."""

    free: Span
    depth: Span

    @property
    def elements(self) -> int:
        """The number of its elements."""
        return (self.free[1] - self.free[0]) * (self.depth[1] - self.depth[0])


class SlotCut(NamedTuple):
    """The cut of an operand with `length` elements along its free axis, which is that of the rows
    in memory if `in_rows` is set, for `pes` PEs; pieces of a row are multiples of `unit`.
    """

    pes: int
    unit: int
    length: int
    in_rows: bool

    @property
    def by_depth(self) -> bool:
        """Whether slots are ranges of the depth."""
        return not self.in_rows or self.length == 1

    @property
    def pieces(self) -> int:
        """The slots of a row in memory."""
        return max(1, self.pes // self.length)

    @property
    def _unit(self) -> int:
        """The unit of a range of the depth, of which whole rows in memory may be any number."""
        return self.unit if self.in_rows else 1

    def slots(self, parts: tuple[Span, ...], chunk: Span) -> tuple[GatherSlot, ...]:
        """The slots of the PEs. Those of the PEs of a part are cut from that part."""
        if self.by_depth or self.pieces > 1:
            return self._pieces_of_rows(chunk)
        slots = list[GatherSlot]()
        for pe in range(self.pes):
            turn, part = divmod(pe, len(parts))
            (start, stop), turns = parts[part], self.pes // len(parts)
            length = stop - start
            rows = start + length * turn // turns, start + length * (turn + 1) // turns
            slots.append(GatherSlot(rows, chunk))
        return tuple(slots)

    def _pieces_of_rows(self, chunk: Span) -> tuple[GatherSlot, ...]:
        """Ranges of the depth, of all rows by depth, else of the rows in their order."""
        begin, end = chunk
        pieces = self.pes if self.by_depth else self.pieces
        cuts = padded(divided(end - begin, pieces, self._unit), pieces)
        rows = [(0, self.length)]
        if not self.by_depth:
            rows = [(row, row + 1) for row in range(self.length)]
        slots = [
            GatherSlot(each, (begin + first, begin + last)) for each in rows for first, last in cuts
        ]
        empty = GatherSlot((0, 0), (end, end))
        return (*slots, *[empty] * (self.pes - len(slots)))

    def longest(self, part: int, parts: int, chunk: int) -> int:
        """The elements of the longest slot of a chunk, of `parts` parts with up to `part` rows."""
        pieces = self.pes if self.by_depth else self.pieces
        piece = chunk if pieces == 1 else -(-chunk // pieces // self._unit) * self._unit
        rows = self.length if self.by_depth else -(-part // (self.pes // parts))
        return (1 if pieces > 1 and not self.by_depth else rows) * piece


def padded(spans: list[Span], count: int) -> tuple[Span, ...]:
    """`count` ranges, the last ones empty."""
    end = spans[-1][1]
    return (*spans, *[(end, end)] * (count - len(spans)))
