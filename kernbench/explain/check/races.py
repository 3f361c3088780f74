"""Finds races: two accesses of different threads to a common byte, one a write, without an order.

Accesses of a tensor come in an order that the run could have had: those of commands and threads
that may overlap in it (`overlaps`). Its bytes are cut into cells, at
all ends of rows of the blocks that may be in a race, and each cell keeps the accesses that are
still to be compared with later ones: a write replaces all that is before it, a read replaces
earlier reads of its line. An access in a race with a replaced one is in a race with its successor.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernbench.explain.check.accesses import TrackedAccess

Cells = NDArray[np.int64]


class Race(NamedTuple):
    """Two accesses that share the byte at `address`, the first in the order of the replay."""

    tensor: int
    address: int
    first: TrackedAccess
    second: TrackedAccess


def races(accesses: Iterable[TrackedAccess]) -> Iterator[Race]:
    """The races among accesses, each pair of accesses once."""
    by_tensor = defaultdict[tuple[int, int], list[TrackedAccess]](list)
    for each in accesses:
        by_tensor[each.accessor.sip, each.block.tensor].append(each)
    for (_, tensor), own in by_tensor.items():
        yield from _Cells(tensor, own).races()


class _Cells:
    """The bytes of a tensor in cells, with the accesses that each keeps."""

    def __init__(self, tensor: int, accesses: Sequence[TrackedAccess]) -> None:
        self._tensor, self._accesses = tensor, accesses
        ends = [_edges(each) for each in accesses]
        self._edges: Cells = np.unique(np.concatenate(ends))
        # The accesses of a cell are a set with a number, since many cells have the same.
        self._sets: list[tuple[int, ...]] = [()]
        self._numbers: dict[tuple[int, ...], int] = {(): 0}
        self._state = np.zeros(len(self._edges), np.int64)
        self._pairs = dict[tuple[int, int], int]()

    def races(self) -> Iterator[Race]:
        """Add all accesses, in their order."""
        for number, access in enumerate(self._accesses):
            cells = self._cells(access)
            before = self._state[cells]
            if len(before) == 1 or (before == before[0]).all():
                self._state[cells] = self._with(number, int(before[0]), int(cells[0]))
                continue
            kinds, places, inverse = np.unique(before, return_index=True, return_inverse=True)
            after = [
                self._with(number, int(kind), int(cells[place]))
                for kind, place in zip(kinds, places, strict=True)
            ]
            self._state[cells] = np.array(after, np.int64)[inverse]
        for (first, second), cell in self._pairs.items():
            yield Race(
                self._tensor,
                int(self._edges[cell]),
                self._accesses[first],
                self._accesses[second],
            )

    def _cells(self, access: TrackedAccess) -> Cells:
        layout, address = access.block.layout, access.block.address
        begins: Cells = np.searchsorted(self._edges, layout.offsets + address)
        ends: Cells = np.searchsorted(self._edges, layout.offsets + (address + layout.row_bytes))
        counts = ends - begins
        if (counts == 1).all():
            return begins
        firsts: Cells = np.cumsum(counts) - counts
        return np.arange(int(counts.sum()), dtype=np.int64) + np.repeat(begins - firsts, counts)

    def _with(self, number: int, kind: int, cell: int) -> int:
        """The number of the set that a set becomes with an access; notes its races."""
        access, kept = self._accesses[number], list[int]()
        for each in self._sets[kind]:
            other = self._accesses[each]
            is_before = other.is_before(access)
            if (
                not is_before
                and (other.writes or access.writes)
                and other.accessor.key != access.accessor.key
                and not (other.is_atomic and access.is_atomic)
            ):
                self._pairs.setdefault((each, number), cell)
            if not is_before or not _covers(access, other):
                kept.append(each)
        key = (*kept, number)
        result = self._numbers.get(key)
        if result is None:
            result = self._numbers[key] = len(self._sets)
            self._sets.append(key)
        return result


def _covers(later: TrackedAccess, earlier: TrackedAccess) -> bool:
    """Whether what is in a race with an access is in one with a later one, which comes behind."""
    return later.writes or (not earlier.writes and earlier.row.line == later.row.line)


def _edges(access: TrackedAccess) -> Cells:
    layout, address = access.block.layout, access.block.address
    begins: Cells = layout.offsets + address
    ends: Cells = begins + layout.row_bytes
    return np.concatenate([begins, ends])
