"""Products that start before their place in the program, while the kernel waits for the vector
engine.

A product may start if all commands that write its operands have been issued, and it adds to no
accumulator. At most one is ahead of the program.

    program      s0 = q k0 | softmax s0 | o += p0 v0 | s1 = q k1 | softmax s1 | ...
    GEMM engine  s0        | s1         | o += p0 v0 |             s2         | ...
"""

from collections import deque
from collections.abc import Sequence

from kernbench.triton.tape.tape import ProductCommand, TapeCommand, TapeStorage

_WINDOW = 48
"""Commands behind the place of the program among which a product is looked for."""


class ProductsAhead:
    """The products of a tape, and the storages that commands have still to write."""

    def __init__(self, commands: Sequence[TapeCommand]) -> None:
        self._unwritten = dict[TapeStorage, int]()
        self._products = deque[tuple[int, ProductCommand]]()
        for position, command in enumerate(commands):
            target = command.writes()
            if target is not None:
                self._unwritten[target] = self._unwritten.get(target, 0) + 1
            if isinstance(command, ProductCommand) and command.acc is None and command.out is None:
                self._products.append((position, command))

    def wrote(self, storage: TapeStorage) -> None:
        """A command that writes a storage has been issued."""
        if storage in self._unwritten:
            self._unwritten[storage] -= 1

    def startable(self, position: int) -> ProductCommand | None:
        """The next product at or behind a position, if it may start."""
        while self._products and self._products[0][0] < position:
            self._products.popleft()
        if not self._products:
            return None
        place, product = self._products[0]
        if product.is_issued or place > position + _WINDOW or product.target.storage.pieces:
            return None
        if any(self._unwritten.get(each, 0) for each in product.reads()):
            return None
        return product
