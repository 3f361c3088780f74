"""Commands that a tape does without: sums of products that the GEMM engine adds itself, and results
that nothing reads.
"""

from collections.abc import Sequence

from kernbench.triton.tape.tape import MathStep, ProductCommand, TapeBlock, TapeCommand, TapeStorage
from runtime.core.dtypes import float32, int32


def accumulated(tape: Sequence[TapeCommand], *, is_last: bool) -> list[TapeCommand]:
    """The tape with `acc + a @ b` as one product, where nothing else reads `a @ b`."""
    products = {
        each.target.storage: number
        for number, each in enumerate(tape)
        if isinstance(each, ProductCommand) and each.acc is None and not each.target.storage.pieces
    }
    if not products:
        return list(tape)
    written, uses = dict[TapeStorage, int](), dict[TapeStorage, int]()
    for number, command in enumerate(tape):
        target = command.writes()
        if target is not None:
            written.setdefault(target, number)
        for storage in command.reads():
            uses[storage] = uses.get(storage, 0) + 1
    result: list[TapeCommand | None] = list(tape)
    for number, command in enumerate(tape):
        if not isinstance(command, MathStep) or command.name != "add":
            continue
        pair = _accumulator(command, products, uses, is_last=is_last)
        if pair is None:
            continue
        acc, product = pair
        at = products.pop(product)
        old = result[at]
        assert isinstance(old, ProductCommand)
        new = ProductCommand(old.a, old.b, acc, command.target)
        new.line = old.line
        # The accumulator may be computed behind the product.
        is_before = written.get(acc.storage, -1) < at
        result[at], result[number] = (new, None) if is_before else (None, new)
    return [each for each in result if each is not None]


def _accumulator(
    step: MathStep,
    products: dict[TapeStorage, int],
    uses: dict[TapeStorage, int],
    *,
    is_last: bool,
) -> tuple[TapeBlock, TapeStorage] | None:
    """The accumulator of a sum, and the product that is added to it alone."""
    if step.target.storage.pieces or len(step.operands) != 2:
        return None
    for acc, product in (step.operands, step.operands[::-1]):
        if not isinstance(acc, TapeBlock) or not isinstance(product, TapeBlock):
            continue
        storage = product.storage
        if (
            storage in products
            and uses.get(storage) == 1
            and (is_last or not storage.holders)
            and product.is_whole
            and acc.shape == product.shape
            and acc.dtype == product.dtype
            and acc.dtype.name in (float32.name, int32.name)
        ):
            return acc, storage
    return None


def without_unused(tape: Sequence[TapeCommand], *, is_last: bool) -> list[TapeCommand]:
    """The tape without operations of the vector engine whose results nothing reads."""
    needed, kept = set[TapeStorage](), list[TapeCommand]()
    for command in reversed(tape):
        target = command.writes()
        if (
            isinstance(command, MathStep)
            and target not in needed
            and (is_last or not command.target.storage.holders)
        ):
            continue
        needed.update(command.reads())
        kept.append(command)
    kept.reverse()
    return kept
