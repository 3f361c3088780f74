"""Storage that tiles use in turn: the registers of a PE, and the scheduler's buffers in its TCM.

Double buffering is a free list of two: a stage fills one slot while the next stage empties the
other. A stage that finds no free slot waits, which is the back-pressure of the pipeline.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from runtime.core.compiled.choice import IS_COMPILED
from runtime.model.tile_layout import BufferLayout, RegisterLayout
from runtime.model.tiles import TileSize


class ReferenceFreeList:
    """`count` slots, by index from 0. The slot that has been free for longest is taken first.

    So slots are used in turn even where one is free all the time, as the hardware's pointers do.
    """

    __slots__ = ("_count", "_when_freed", "available", "take")

    def __init__(self, count: int) -> None:
        self._count = count
        self._when_freed: list[Callable[[], None]] = []
        self.available = deque(range(count))
        """The free slots, in the order in which they are taken."""
        # The method of the queue itself: every step of a product takes three slots.
        self.take = self.available.popleft
        """Reserve a free slot; returns its index."""

    @property
    def unused(self) -> bool:
        """Whether all slots are free."""
        return len(self.available) == self._count

    def when_freed(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever a slot is freed."""
        self._when_freed.append(callback)

    def free(self, index: int) -> None:
        """Release a slot."""
        assert index not in self.available, f"slot {index} is free already"
        self.available.append(index)
        for callback in self._when_freed:
            callback()


if TYPE_CHECKING or not IS_COMPILED:
    FreeList = ReferenceFreeList
else:
    from sip_node.compiled.tile_stages import Slots as FreeList


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
