"""The addresses of tiles in a PE: in its registers, and in the scheduler's part of its TCM.

Every slot has room for a full tile of the widest elements, so its address does not depend on the
type.
"""

from runtime.model.tiles import TileSize

WIDEST_BYTES = 4
"""The size of the widest element."""


class RegisterLayout:
    """Register sets of operand tiles, accumulators and rows of bias from `base` on.

    `nbytes` is the size of all of them. There are two register sets, so that one is filled while
    the engine reads the other, and two accumulators. A row of bias is in use from the beginning of
    its fetch until the vector engine has added it. During that time its step holds a register set
    or an accumulator, so four rows are enough.
    """

    SETS = ACCUMULATORS = 2
    BIASES = SETS + ACCUMULATORS

    def __init__(self, base: int, tile: TileSize) -> None:
        self._a_bytes = tile.m * tile.k * WIDEST_BYTES
        # A register set holds the A tile, then the B tile of one step.
        self._set_bytes = self._a_bytes + tile.k * tile.n * WIDEST_BYTES
        self._accumulator_bytes = tile.m * tile.n * WIDEST_BYTES
        self._bias_bytes = tile.n * WIDEST_BYTES
        self._sets = base
        self._accumulators = self._sets + self.SETS * self._set_bytes
        self._biases = self._accumulators + self.ACCUMULATORS * self._accumulator_bytes
        self.nbytes = self._biases + self.BIASES * self._bias_bytes - base

    def a(self, index: int) -> int:
        """The address of the first operand's tile in a set."""
        return self._sets + index * self._set_bytes

    def b(self, index: int) -> int:
        """The address of the second operand's tile in a set."""
        return self.a(index) + self._a_bytes

    def accumulator(self, index: int) -> int:
        """The address of an accumulator."""
        return self._accumulators + index * self._accumulator_bytes

    def bias(self, index: int) -> int:
        """The address of a row of bias."""
        return self._biases + index * self._bias_bytes


class BufferLayout:
    """`count` buffers for the tiles of each operand and of the result from `base` on.

    `nbytes` is the size of all of them.
    """

    def __init__(self, base: int, tile: TileSize, count: int) -> None:
        self._a_bytes = tile.m * tile.k * WIDEST_BYTES
        self._b_bytes = tile.k * tile.n * WIDEST_BYTES
        self._result_bytes = tile.m * tile.n * WIDEST_BYTES
        self._a, self._b = base, base + count * self._a_bytes
        # All A buffers, then all B buffers, then the buffers of results.
        self._result = self._b + count * self._b_bytes
        self.nbytes = self.result(count) - base

    def a(self, index: int) -> int:
        """The address of a buffer for the first operand."""
        return self._a + index * self._a_bytes

    def b(self, index: int) -> int:
        """The address of a buffer for the second operand."""
        return self._b + index * self._b_bytes

    def result(self, index: int) -> int:
        """The address of a buffer for a tile of the result."""
        return self._result + index * self._result_bytes
