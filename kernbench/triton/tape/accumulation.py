"""Commands that a tape does without, since the GEMM engine does what they do: sums with products,
conversions of products, stores of products; and results that nothing reads.
"""

from collections.abc import Sequence

from kernbench.triton.tape.tape import (
    MathStep,
    ProductCommand,
    StoreCommand,
    TapeBlock,
    TapeCommand,
    TapeStorage,
)
from runtime.core.dtypes import bfloat16, float16, float32, int32
from runtime.language.value import row_major

_RESULTS = frozenset({float16.name, bfloat16.name, float32.name})
"""The types to which the engine rounds a sum in float32."""


class ShorterTape:
    """A tape with fewer commands; `is_last` is whether the program has ended, and holds no value
    any more.
    """

    def __init__(self, tape: Sequence[TapeCommand], *, is_last: bool) -> None:
        self._tape: list[TapeCommand | None] = list(tape)
        self._is_last = is_last
        self._written = dict[TapeStorage, int]()
        self._uses = dict[TapeStorage, int]()
        # The products whose result is a storage of their own, by it.
        self._products = dict[TapeStorage, int]()
        for number, command in enumerate(tape):
            target = command.writes()
            if target is not None:
                self._written.setdefault(target, number)
            for storage in command.reads():
                self._uses[storage] = self._uses.get(storage, 0) + 1
            if isinstance(command, ProductCommand) and not command.target.storage.pieces:
                self._products[command.target.storage] = number

    def commands(self) -> list[TapeCommand]:
        """The commands that are left."""
        for number, command in enumerate(self._tape):
            if not self._products:
                break
            if isinstance(command, MathStep) and not command.target.storage.pieces:
                if command.name == "add":
                    self._accumulate(number, command)
                elif command.name == "cast":
                    self._convert(number, command)
            elif isinstance(command, StoreCommand):
                self._stream(number, command)
        return self._without_unused([each for each in self._tape if each is not None])

    def _product_of(self, block: object) -> tuple[int, ProductCommand] | None:
        """The product whose result is a block, and is read there alone."""
        if not isinstance(block, TapeBlock) or not block.is_whole:
            return None
        storage = block.storage
        at = self._products.get(storage)
        if at is None or self._uses.get(storage) != 1 or (storage.holders and not self._is_last):
            return None
        command = self._tape[at]
        assert isinstance(command, ProductCommand)
        return at, command

    def _put(self, at: int, old: int, product: ProductCommand, line: str) -> None:
        """Put a product to one place, and remove what it replaces at another one."""
        product.line = line
        self._tape[old], self._tape[at] = None, product
        if product.out is None:
            self._products[product.target.storage] = at

    def _accumulate(self, number: int, step: MathStep) -> None:
        """A sum with a product is one product."""
        for acc, result in (step.operands, step.operands[::-1]):
            found = self._product_of(result)
            if found is None or not isinstance(acc, TapeBlock):
                continue
            at, product = found
            if (
                product.acc is not None
                or acc.shape != product.target.shape
                or acc.dtype != product.target.dtype
                or acc.dtype.name not in (float32.name, int32.name)
            ):
                continue
            del self._products[product.target.storage]
            new = ProductCommand(product.a, product.b, acc, step.target)
            # The accumulator may be computed behind the product.
            is_before = self._written.get(acc.storage, -1) < at
            self._put(*((at, number) if is_before else (number, at)), new, product.line)
            return

    def _convert(self, number: int, step: MathStep) -> None:
        """The engine rounds its sum once, to the type of the result."""
        found = self._product_of(step.operands[0])
        if found is None or step.options.dtype is None or step.options.dtype.name not in _RESULTS:
            return
        at, product = found
        if product.target.dtype.name != float32.name or step.target.shape != product.target.shape:
            return
        del self._products[product.target.storage]
        new = ProductCommand(product.a, product.b, product.acc, step.target)
        self._put(at, number, new, product.line)

    def _stream(self, number: int, store: StoreCommand) -> None:
        """The scheduler writes tiles of a result to memory itself."""
        found = self._product_of(store.block)
        if found is None or len(store.boxes) != 1:
            return
        at, product = found
        ((view, _, strides),) = store.boxes
        shape = product.target.shape
        if view.shape != shape or view.strides != row_major(shape) or view.offset:
            return
        if len(strides) != 2 or strides[1] != 1 or strides[0] < shape[1]:
            return
        del self._products[product.target.storage]
        new = ProductCommand(product.a, product.b, product.acc, product.target)
        new.out = store
        self._put(number, at, new, store.line)

    def _without_unused(self, tape: Sequence[TapeCommand]) -> list[TapeCommand]:
        needed, kept = set[TapeStorage](), list[TapeCommand]()
        for command in reversed(tape):
            target = command.writes()
            if (
                isinstance(command, MathStep)
                and target not in needed
                and (self._is_last or not command.target.storage.holders)
            ):
                continue
            needed.update(command.reads())
            kept.append(command)
        kept.reverse()
        return kept
