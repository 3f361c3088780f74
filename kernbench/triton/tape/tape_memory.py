"""The order of loads and stores of a program in memory."""

from collections.abc import Sequence
from itertools import islice

from kernbench.triton.tape.tape import (
    AtomicCommand,
    GatheredRows,
    LoadCommand,
    ProductCommand,
    StoreCommand,
    TapeCommand,
    TapeStorage,
)
from runtime.language.context import PendingResult
from runtime.language.memory_in_flight import UsedBlock
from runtime.language.rows import row_blocks
from runtime.language.value import Pointer, Shape, Strides

_WINDOW = 64
"""Loads that are examined for a start ahead."""


class MemoryInUse:
    """The blocks of memory that operations in flight read and write."""

    def __init__(self) -> None:
        # Dictionaries, in the order of the starts.
        self._reads: dict[PendingResult, list[UsedBlock]] = {}
        self._writes: dict[PendingResult, list[UsedBlock]] = {}

    def read(
        self, pointer: Pointer, shape: Shape, strides: Strides, operation: PendingResult
    ) -> None:
        """A load has begun."""
        self._reads[operation] = [UsedBlock(pointer, shape, strides)]

    def read_rows(self, rows: GatheredRows, operation: PendingResult) -> None:
        """A gather has begun."""
        self._reads[operation] = _blocks(rows)

    def write(
        self, pointer: Pointer, shape: Shape, strides: Strides, operation: PendingResult
    ) -> None:
        """A store has begun."""
        self._writes[operation] = [UsedBlock(pointer, shape, strides)]

    def end(self, operation: PendingResult) -> None:
        """The kernel waits for an operation."""
        self._reads.pop(operation, None)
        self._writes.pop(operation, None)

    def written(self, pointer: Pointer, shape: Shape, strides: Strides) -> list[PendingResult]:
        """The operations that write to a block."""
        return _sharing(self._writes, [UsedBlock(pointer, shape, strides)])

    def written_rows(self, rows: GatheredRows) -> list[PendingResult]:
        """The operations that write to rows."""
        return _sharing(self._writes, _blocks(rows)) if self._writes else []

    def wait_for(self, operations: Sequence[PendingResult]) -> None:
        """Wait for operations."""
        for operation in operations:
            self.end(operation)
            operation.wait()

    def writing(self) -> list[PendingResult]:
        """The operations that write."""
        return list(self._writes)

    def used(self, pointer: Pointer, shape: Shape, strides: Strides) -> list[PendingResult]:
        """The operations that read or write a block."""
        block = [UsedBlock(pointer, shape, strides)]
        return [*_sharing(self._reads, block), *_sharing(self._writes, block)]


def _sharing(
    uses: dict[PendingResult, list[UsedBlock]], blocks: Sequence[UsedBlock]
) -> list[PendingResult]:
    return [
        operation
        for operation, used in uses.items()
        if any(each.shares_bytes(other) for each in blocks for other in used)
    ]


def blocks_of(load: LoadCommand) -> list[UsedBlock]:
    """The blocks of memory that a load reads."""
    blocks = [UsedBlock(at, view.shape, steps) for view, at, steps in load.boxes]
    for rows in load.rows:
        blocks += _blocks(rows)
    return blocks


def _blocks(rows: GatheredRows) -> list[UsedBlock]:
    return row_blocks(rows.pointer, rows.numbers, rows.shape, (1, *rows.strides))


class LoadsAhead:
    """The loads of a tape that may start before their place in the program.

    A load starts if fewer than `stages` loads of its site are at or behind the place of the
    program, no store before it writes what it reads, and its values fit into `budget` bytes.
    """

    def __init__(self, commands: Sequence[TapeCommand], stages: int, budget: int) -> None:
        self._left, self._stages = budget, stages
        self._reached: dict[object, int] = {}
        self._number: dict[LoadCommand, int] = {}
        counts = dict[object, int]()
        # None: all memory.
        self._stores = list[tuple[int, list[UsedBlock] | None]]()
        self._waiting: dict[LoadCommand, int] = {}
        for position, command in enumerate(commands):
            if isinstance(command, LoadCommand):
                number = counts.get(command.site, 0)
                counts[command.site] = number + 1
                self._number[command] = number
                self._waiting[command] = position
                continue
            if isinstance(command, AtomicCommand):
                # What is read behind an acquisition may be written before it.
                self._stores.append((position, None if command.acquires else command.blocks()))
                continue
            store = command.out if isinstance(command, ProductCommand) else command
            if isinstance(store, StoreCommand):
                used = [UsedBlock(at, view.shape, steps) for view, at, steps in store.boxes]
                self._stores.append((position, used))
        self._ahead: set[TapeStorage] = set()
        self._changed = True

    def startable(self, position: int) -> list[LoadCommand]:
        """The loads that start before the command at a position."""
        while self._stores and self._stores[0][0] < position:
            self._stores.pop(0)
            self._changed = True
        if not self._changed or self._left <= 0:
            return []
        self._changed = False
        started = list[LoadCommand]()
        for load, place in list(islice(self._waiting.items(), _WINDOW)):
            if place <= position or not self._may_start(load, place):
                continue
            self._left -= load.storage.nbytes
            self._ahead.add(load.storage)
            del self._waiting[load]
            started.append(load)
        return started

    def reach(self, load: LoadCommand) -> None:
        """The program is at a load, which has started."""
        self._changed = True
        self._waiting.pop(load, None)
        self._reached[load.site] = self._number[load] + 1
        if load.storage in self._ahead:
            self._ahead.remove(load.storage)
            self._left += load.storage.nbytes

    def takes_product(self, product: ProductCommand) -> bool:
        """Whether the result of a product that starts ahead fits into the budget, which it takes
        then.
        """
        storage = product.target.storage
        if storage.nbytes > self._left:
            return False
        self._left -= storage.nbytes
        self._ahead.add(storage)
        return True

    def reach_product(self, product: ProductCommand) -> None:
        """The program is at a product."""
        if product.target.storage in self._ahead:
            self._changed = True
            self._ahead.remove(product.target.storage)
            self._left += product.target.storage.nbytes

    def _may_start(self, load: LoadCommand, place: int) -> bool:
        first = self._number[load] < self._reached.get(load.site, 0) + self._stages - 1
        if not first or load.storage.nbytes > self._left:
            return False
        blocks = blocks_of(load)
        return not any(
            used is None or any(each.shares_bytes(other) for each in used for other in blocks)
            for at, used in self._stores
            if at < place
        )
