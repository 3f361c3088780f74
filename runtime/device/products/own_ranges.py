"""The ranges of the own operand of a product that each PE multiplies.

A PE has those that its slice holds where that is about as much for all. Of a batch each cube
multiplies what its slices hold, in equal parts: no range lies in two matrices. A cube with few rows
of a matrix, the others of which its neighbour holds, leaves them to that one, since it would copy
the other operand for them.
"""

from itertools import pairwise
from typing import NamedTuple

from runtime.device.products.gather_machine import (
    GatherMachine,
    GatherOperand,
    batch_copies_load,
)
from runtime.model.placement import Span

_BESIDE_COPIES, _BESIDE_NS = 0.75, 700.0
"""The rows of a neighbour that come beside the copies of a batch: as a part of the rows of these
that pass the busiest link, and the time of a link for them.
"""
_ROWS_FOR_ONE = 3
"""The rows of a cube for one of a neighbour."""


class OwnRanges(NamedTuple):
    """The own operand, of a batch that of one matrix, and the ranges of its rows, counted through
    all matrices of the batch, that each cube multiplies because it holds them; none if rows are
    those of the depth, or if cubes hold no ranges.
    """

    machine: GatherMachine
    own: GatherOperand
    batch: int
    rows_of_cubes: tuple[Span, ...] = ()

    @classmethod
    def of(
        cls,
        machine: GatherMachine,
        operands: tuple[GatherOperand, GatherOperand],
        depth: tuple[int, int],
        batch: int,
    ) -> "OwnRanges":
        """The ranges of the own one of two operands, which the other one passes. `depth` is that of
        the product, and the size of an element in bytes.
        """
        own, gathered = operands
        if batch == 1:
            return cls(machine, own, batch)
        mesh, pes, length = machine.mesh, machine.rates.pes, own.length
        rows = own.rows_of_cubes(batch, mesh.pes, pes)
        if rows:
            matrices = tuple((start // length, -(-stop // length)) for start, stop in rows)
            copied = batch_copies_load(mesh, gathered, depth[0], matrices)
            near = (
                copied * gathered.length * _BESIDE_COPIES,
                _BESIDE_NS * machine.link_gbs / (depth[0] * depth[1]),
                length * batch * mesh.pes / pes / _ROWS_FOR_ONE,
            )
            rows = own.rows_of_cubes(batch, mesh.pes, pes, min(near))
        return cls(machine, own.in_group(batch, machine.group(batch), pes), batch, rows)

    @property
    def most_parts(self) -> int:
        """The most neighbours that may have the same ranges, of the matrices of their cube."""
        return self.machine.mesh.pes // max(map(len, self._pieces_of_cubes()), default=1)

    def dealt(self, parts: int) -> list[tuple[Span, ...]]:
        """The ranges of each PE if `parts` neighbours have the same ones: of one matrix, or of
        several ones where there are more matrices than such neighbours.
        """
        sharing, length = self.machine.rates.pes // parts, self.own.length
        if self.batch == 1:
            spans = self._spans()
            first = [spans[each * parts : each * parts + parts] for each in range(sharing)]
            return [((each[0][0], each[-1][1]),) for each in first for _ in range(parts)]
        cubes = self._pieces_of_cubes()
        in_cube = sharing // max(1, len(cubes))
        if cubes and max(map(len, cubes)) <= in_cube:
            ranges = [each for pieces in cubes for each in _shared(pieces, in_cube)]
        elif self.batch <= sharing:
            bounds = [sharing * number // self.batch for number in range(self.batch + 1)]
            whole = self._pieces((0, length * self.batch))
            ranges = [
                each
                for piece, (start, stop) in zip(whole, pairwise(bounds), strict=True)
                for each in _shared((piece,), stop - start)
            ]
        else:
            cut = [length * self.batch * each // sharing for each in range(sharing + 1)]
            ranges = [self._pieces(each) for each in pairwise(cut)]
        return [each for each in ranges for _ in range(parts)]

    def _pieces_of_cubes(self) -> list[tuple[Span, ...]]:
        return [self._pieces(each) for each in self.rows_of_cubes]

    def _pieces(self, rows: Span) -> tuple[Span, ...]:
        """The ranges of single matrices in a range of the rows of all."""
        (start, stop), length = rows, self.own.length
        inner = range((start // length + 1) * length, stop, length)
        return tuple(pairwise([start, *inner, stop])) if start < stop else ()

    def _spans(self) -> list[Span]:
        """The range of each PE: the rows that it holds, or equal ranges if not all hold some."""
        pes, length = self.machine.rates.pes, self.own.length
        if self.are_held:
            ends = [min(length, round(end / self.own.pitch)) for end in self.own.ends[:-1]]
            # The last PEs hold nothing where shares are rounded up to whole bursts.
            ends += [length] * (pes - len(ends))
            spans = list(pairwise([0, *ends]))
            if max(stop - start for start, stop in spans) <= -(-2 * length // pes):
                return spans
        return [(length * pe // pes, length * (pe + 1) // pes) for pe in range(pes)]

    @property
    def are_held(self) -> bool:
        """Whether nearly every PE that multiplies a matrix holds a range of the own operand."""
        return self.own.in_rows and self.own.is_on(self.group_pes)

    @property
    def group_pes(self) -> int:
        """The PEs that multiply a matrix."""
        mesh = self.machine.group(self.batch)
        return mesh.width * mesh.height * mesh.pes


def _shared(pieces: tuple[Span, ...], count: int) -> list[tuple[Span, ...]]:
    """Pieces, each divided over some of `count` PEs, so that the longest part is short."""
    shares = [1] * len(pieces)
    for _ in range(count - len(pieces) if pieces else 0):
        longest = max(
            range(len(pieces)), key=lambda each: (pieces[each][1] - pieces[each][0]) / shares[each]
        )
        shares[longest] += 1
    parts = [
        (part,)
        for piece, share in zip(pieces, shares, strict=True)
        for part in cut_range(piece, share)
    ]
    return [*parts, *[()] * (count - len(parts))]


def cut_range(span: Span, count: int) -> tuple[Span, ...]:
    """A range in `count` about equal ones without the empty ones."""
    start, length = span[0], span[1] - span[0]
    bounds = [start + length * number // count for number in range(count + 1)]
    return tuple(each for each in pairwise(bounds) if each[0] < each[1])
