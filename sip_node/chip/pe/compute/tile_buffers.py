"""Storage that tiles use in turn: the registers of a PE, and the scheduler's buffers in its TCM.

Double buffering is a free list of two: a stage fills one slot while the next stage empties the
other. A stage that finds no free slot waits, which is the back-pressure of the pipeline.
"""

from collections.abc import Callable

from runtime.model.tile_layout import BufferLayout, RegisterLayout
from runtime.model.tiles import TileSize


class FreeList:
    """`count` slots, by index from 0, `filled` of them free. The slot that has been free for
    longest is taken first.

    So slots are used in turn even where one is free all the time, as the hardware's pointers do.
    """

    def __init__(self, count: int) -> None:
        self.count = self.filled = count
        # A ring, in which the free slots follow each other from index `first` on.
        self.order = list(range(count))
        self.first = 0
        self._is_free = [True] * count
        self._when_freed: list[Callable[[], None]] = []

    @property
    def available(self) -> bool:
        """Whether a slot is free."""
        return self.filled > 0

    @property
    def unused(self) -> bool:
        """Whether all slots are free."""
        return self.filled == self.count

    def when_freed(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever a slot is freed."""
        self._when_freed.append(callback)

    @property
    def turn(self) -> tuple[int, ...]:
        """The slots in the order in which they will be taken, when all are free."""
        assert self.unused, "slots are in use"
        return tuple(self.order[self.first :] + self.order[: self.first])

    @turn.setter
    def turn(self, order: tuple[int, ...]) -> None:
        self.order, self.first = list(order), 0

    def take(self) -> int:
        """Reserve a free slot; returns its index."""
        if not self.filled:
            raise IndexError("no slot is free")
        index = self.order[self.first]
        self.first = (self.first + 1) % self.count
        self.filled -= 1
        self._is_free[index] = False
        return index

    def free(self, index: int) -> None:
        """Release a slot."""
        is_taken = 0 <= index < self.count and not self._is_free[index]
        assert is_taken, f"slot {index} is free already"
        self.order[(self.first + self.filled) % self.count] = index
        self.filled += 1
        self._is_free[index] = True
        for callback in self._when_freed:
            callback()


class RegisterFile(RegisterLayout):
    """The registers of a PE."""

    def __init__(self, base: int, tile: TileSize) -> None:
        super().__init__(base, tile)
        self.sets = FreeList(self.SETS)
        self.accumulators = FreeList(self.ACCUMULATORS)
        self.biases = FreeList(self.BIASES)

    @property
    def unused(self) -> bool:
        """Whether nothing is in them."""
        return self.sets.unused and self.accumulators.unused and self.biases.unused


class TileBuffers(BufferLayout):
    """The scheduler's part of TCM. A step reserves the buffers of both its operands together."""

    def __init__(self, base: int, tile: TileSize, count: int) -> None:
        super().__init__(base, tile, count)
        self.count = count
        self.operands = FreeList(count)
        self.results = FreeList(count)

    @property
    def unused(self) -> bool:
        """Whether nothing is in them."""
        return self.operands.unused and self.results.unused
