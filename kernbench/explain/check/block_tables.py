"""The blocks that the calls of a SIP use, call by call, each with its tensor."""

from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernbench.explain.check.geometry import RowLayout, layout_of
from kernbench.explain.records.columns import Columns
from runtime.core.run_tables import NONE, BlockAccess

Numbers = NDArray[Any]


class CallBlock(NamedTuple):
    """A block that a call uses: `tensor` is the number of its tensor, -1 for values in TCM."""

    access: int
    in_memory: bool
    address: int
    layout: RowLayout
    tensor: int


class MemoryColumns(NamedTuple):
    """The blocks in memory as columns: the place of their call among the calls of the SIP, their
    tensor, whether they are written, their first byte, and the number of their layout among
    `layouts`.
    """

    place: Numbers
    tensor: Numbers
    writes: Numbers
    begin: Numbers
    layout: Numbers
    layouts: list[RowLayout]


class BlockTables:
    """The blocks of the calls with the numbers `calls`; `submits` are the calls with which the
    commands of these calls were submitted, of both in the same order.
    """

    def __init__(
        self, blocks: Columns, shards: Columns, memory: Columns, calls: Numbers, submits: Numbers
    ) -> None:
        self._shards, self._memory = shards, memory
        # Blocks in the order of `calls`, those of a call in the order of the table.
        by_number = np.argsort(calls, kind="stable")
        numbers = calls[by_number]
        index = np.minimum(np.searchsorted(numbers, blocks["call"]), max(len(calls) - 1, 0))
        # A call without an end has no row.
        has_row = np.flatnonzero(numbers[index] == blocks["call"]) if len(calls) else index
        places = by_number[index[has_row]]
        order = np.argsort(places, kind="stable")
        # Row numbers take a tenth of the memory of sorted columns.
        self._table, self._rows = blocks, has_row[order].astype(np.int32)
        self._places = places[order].astype(np.int32)
        self._submits = submits
        self._ends: Numbers = np.searchsorted(self._places, np.arange(len(calls) + 1))

    def of(self, calls: Numbers) -> list[list[CallBlock]]:
        """The blocks of the calls with these places."""
        begins, counts = self._ends[calls], self._ends[calls + 1] - self._ends[calls]
        ends = np.cumsum(counts)
        places = np.arange(int(counts.sum())) + np.repeat(begins - ends + counts, counts)
        rows, table, layouts = self._rows[places], self._table, self._layouts
        blocks = list(
            map(
                CallBlock,
                table["access"][rows].tolist(),
                table["in_memory"][rows].tolist(),
                table["address"][rows].tolist(),
                map(layouts.__getitem__, self._numbers[places].tolist()),
                self._tensors[places].tolist(),
            )
        )
        return [blocks[one:other] for one, other in pairwise([0, *ends.tolist()])]

    @cached_property
    def memory(self) -> MemoryColumns:
        """The blocks in memory."""
        table = self._table
        own = np.flatnonzero(table["in_memory"][self._rows])
        rows = self._rows[own]
        return MemoryColumns(
            self._places[own],
            self._tensors[own],
            table["access"][rows] == BlockAccess.WRITE,
            table["address"][rows],
            self._numbers[own],
            self._layouts,
        )

    @property
    def makes(self) -> Numbers:
        """The places of the calls that make a value with undefined elements."""
        return self._places[self._table["access"][self._rows] == BlockAccess.MAKE]

    @cached_property
    def _keys(self) -> tuple[Numbers, Numbers]:
        """A row of each layout, and the number of that of each block."""
        keys: Numbers = np.zeros(len(self._rows), np.int64)
        for name in ("dtype", "shape", "strides"):
            each = self._table.text(name)
            keys = keys * max(len(each.values), 1) + each.codes[self._rows]
        _, firsts, numbers = np.unique(keys, return_index=True, return_inverse=True)
        return self._rows[firsts], numbers.astype(np.int32)

    @property
    def _numbers(self) -> Numbers:
        return self._keys[1]

    @cached_property
    def _layouts(self) -> list[RowLayout]:
        texts = [self._table.text(name) for name in ("dtype", "shape", "strides")]
        return [layout_of(*(each[row] for each in texts)) for row in self._keys[0].tolist()]

    @cached_property
    def _tensors(self) -> Numbers:
        """The tensor of each block, -1 for one that is in none.

        Memory belongs to the latest tensor that was made in it before its command was submitted.
        """
        table, memory = self._table, self._memory
        addresses: Numbers = table["address"][self._rows]
        tensors: Numbers = np.full(len(addresses), NONE, np.int32)
        if not len(memory) or not len(addresses):
            return tensors
        begins, blocks = self._shards["address"], self._shards["block"].astype(np.int64)
        # Of shards that follow each other at one address the later one comes behind.
        order = np.lexsort((blocks, begins))
        begins, blocks = begins[order], blocks[order]
        ends = begins + self._shards["nbytes"][order]
        farthest = np.maximum.accumulate(ends)
        keys = memory["block"].astype(np.int64) << 40 | memory["call"]
        by_key = np.argsort(keys, kind="stable")
        keys = keys[by_key]
        left = np.flatnonzero(table["in_memory"][self._rows])
        shard = np.searchsorted(begins, addresses[left], "right") - 1
        # The latest shard there may be of a tensor that was made later: then it is an earlier one.
        while len(left):
            address = addresses[left]
            wanted = blocks[shard] << 40 | self._submits[self._places[left]]
            place = np.searchsorted(keys, wanted, "right") - 1
            is_inside = (shard >= 0) & (address < ends[shard])
            fits = is_inside & (place >= 0) & (keys[place] >> 40 == blocks[shard])
            tensors[left[fits]] = memory["tensor"][by_key[place[fits]]]
            shard = shard - 1
            keeps = ~fits & (shard >= 0) & (farthest[shard] > address)
            left, shard = left[keeps], shard[keeps]
        return tensors
