"""The places that tiles use in turn: the registers of a PE, and the scheduler's buffers in its TCM."""

from collections import deque
from collections.abc import Callable

from runtime.model.tile_layout import BufferLayout, RegisterLayout
from runtime.model.tiles import TileSize


class FreeList:
    """`count` places, numbered from 0. The one that has been free longest is taken first."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._idle = deque(range(count))
        self._when_freed: list[Callable[[], None]] = []

    @property
    def available(self) -> bool:
        """Whether a place is free."""
        return bool(self._idle)

    @property
    def unused(self) -> bool:
        """Whether all places are free."""
        return len(self._idle) == self._count

    def when_freed(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever a place falls free."""
        self._when_freed.append(callback)

    def take(self) -> int:
        """The number of a place that was free."""
        return self._idle.popleft()

    def free(self, place: int) -> None:
        """Give a place back."""
        assert place not in self._idle, f"place {place} is free already"
        self._idle.append(place)
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
    """The scheduler's part of TCM. A step takes the buffers of both its operands together."""

    def __init__(self, base: int, tile: TileSize, count: int) -> None:
        super().__init__(base, tile, count)
        self.operands = FreeList(count)
        self.results = FreeList(count)

    @property
    def unused(self) -> bool:
        """Whether nothing is in them."""
        return self.operands.unused and self.results.unused
