"""Where tiles are in a PE: in its registers, and in the scheduler's part of its TCM.

Every place has room for a full tile of the widest elements, so where a tile is does not depend on its type.
"""

from runtime.model.tiles import TileSize

WIDEST_BYTES = 4
"""Of one element."""


class RegisterLayout:
    """From `base` on: sets of operand tiles, accumulators, rows of bias. `nbytes` is how much all of them need.

    There are two sets, to fetch into one while the engine works on the other, and two accumulators. A step needs a row of bias
    from the begin of its fetch until the vector engine has added it, and has a set or an accumulator all that time: four are
    enough.
    """

    SETS = ACCUMULATORS = 2
    BIASES = SETS + ACCUMULATORS

    def __init__(self, base: int, tile: TileSize) -> None:
        self._a_bytes = tile.m * tile.k * WIDEST_BYTES
        self._set_bytes = self._a_bytes + tile.k * tile.n * WIDEST_BYTES
        self._accumulator_bytes = tile.m * tile.n * WIDEST_BYTES
        self._bias_bytes = tile.n * WIDEST_BYTES
        self._sets = base
        self._accumulators = self._sets + self.SETS * self._set_bytes
        self._biases = self._accumulators + self.ACCUMULATORS * self._accumulator_bytes
        self.nbytes = self._biases + self.BIASES * self._bias_bytes - base

    def a(self, place: int) -> int:
        """The address of the first operand's tile in a set."""
        return self._sets + place * self._set_bytes

    def b(self, place: int) -> int:
        """The address of the second operand's tile in a set."""
        return self.a(place) + self._a_bytes

    def accumulator(self, place: int) -> int:
        """The address of an accumulator."""
        return self._accumulators + place * self._accumulator_bytes

    def bias(self, place: int) -> int:
        """The address of a row of bias."""
        return self._biases + place * self._bias_bytes


class BufferLayout:
    """From `base` on: `count` buffers for the tiles of each operand and of the result. `nbytes` is how much all need."""

    def __init__(self, base: int, tile: TileSize, count: int) -> None:
        self._a_bytes, self._b_bytes = (
            tile.m * tile.k * WIDEST_BYTES,
            tile.k * tile.n * WIDEST_BYTES,
        )
        self._result_bytes = tile.m * tile.n * WIDEST_BYTES
        self._a, self._b = base, base + count * self._a_bytes
        self._result = self._b + count * self._b_bytes
        self.nbytes = self.result(count) - base

    def a(self, place: int) -> int:
        """The address of a buffer for the first operand."""
        return self._a + place * self._a_bytes

    def b(self, place: int) -> int:
        """The address of a buffer for the second operand."""
        return self._b + place * self._b_bytes

    def result(self, place: int) -> int:
        """The address of a buffer for a tile of the result."""
        return self._result + place * self._result_bytes
