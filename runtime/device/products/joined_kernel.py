"""The kernel of independent products whose blocks on a PE share what they read, with elementwise
functions of the products before they are stored.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from runtime.language import tl
from runtime.language.value import Pointer, Value
from runtime.model.placement import Span


def _negative(x: Value) -> Value:
    return x * -1.0


def _sum_of_rows(x: Value) -> Value:
    return tl.sum(x, 0, keep_dims=True)


SUM_OF_ROWS = "sum of rows"
FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "neg": _negative,
    SUM_OF_ROWS: _sum_of_rows,
    **{
        name: getattr(tl, name)
        for name in (
            *("add", "sub", "mul", "div", "abs", "erf", "exp", "log", "relu", "rsqrt"),
            *("sigmoid", "sqrt", "tanh"),
        )
    },
}
"""The operations of an epilogue."""


class EpilogueStep(NamedTuple):
    """An operation on numbered values (integers) and on numbers (floats)."""

    operation: str
    arguments: tuple[int | float, ...]


@dataclass(frozen=True)
class Epilogue:
    """Elementwise functions of a product, and sums of their rows. Value 0 is the product; those of
    the matrices `beside` it and of the steps follow. `results` are the numbers of the values that
    are stored: the product, or steps.
    """

    beside: int
    steps: tuple[EpilogueStep, ...]
    results: tuple[int, ...]

    def __call__(self, *values: Value) -> tuple[Value, ...]:
        """The results that are steps, of the product and what is beside it."""
        known = list(values)
        for name, arguments in self.steps:
            given = (known[each] if isinstance(each, int) else each for each in arguments)
            known.append(FUNCTIONS[name](*given))
        return tuple(known[each] for each in self.results if each)

    @property
    def sums(self) -> tuple[bool, ...]:
        """Whether each result is a sum of rows."""
        return tuple(
            number > 0 and self.step(number).operation == SUM_OF_ROWS for number in self.results
        )

    def step(self, number: int) -> EpilogueStep:
        """The step with the number of its value."""
        return self.steps[number - self.beside - 1]

    def only(self, *values: Value) -> Value:
        """The only result."""
        (result,) = self(*values)
        return result


class StoredRegion(NamedTuple):
    """Rows at a pitch in memory."""

    pointer: Pointer
    shape: tuple[int, int]
    pitch: int

    def load(self) -> tl.PendingValue:
        """Kernel: start to load it."""
        return tl.load_async(self.pointer, self.shape, (self.pitch, 1))

    def store(self, value: Value) -> tl.PendingResult:
        """Kernel: start to store a value in it."""
        return tl.store_async(self.pointer, value, (self.pitch, 1))


class RegionPart(NamedTuple):
    """An operand: rows and columns of a loaded region, or these transposed."""

    region: int
    rows: Span
    columns: Span
    is_turned: bool


class SharingBlock(NamedTuple):
    """A block of the results of a sum of products: its operands, its row of bias, the blocks beside
    it, and the memory of each result; without an epilogue, of the sum.
    """

    factors: tuple[tuple[RegionPart, RegionPart], ...]
    bias: RegionPart | None
    epilogue: Epilogue | None
    beside: tuple[StoredRegion, ...]
    outs: tuple[StoredRegion, ...]


def multiply_sharing(regions: Sequence[StoredRegion], blocks: Sequence[SharingBlock]) -> None:
    """Kernel: blocks of sums of products, or functions of them. A product runs once its regions are
    in TCM, beside the loads of the others, and an epilogue beside the products behind it.
    """
    loads = [each.load() for each in regions]
    loaded = dict[int, Value]()

    def part(each: RegionPart) -> Value:
        if each.region not in loaded:
            loaded[each.region] = tl.wait(loads[each.region])
        value = loaded[each.region][slice(*each.rows), slice(*each.columns)]
        return value.mT if each.is_turned else value

    beside = [[each.load() for each in block.beside] for block in blocks]
    products, stores = list[tl.PendingResult](), list[tl.PendingResult]()
    for block in blocks:
        *first, (left, right) = block.factors
        acc: Value | None = None
        for a, b in first:
            acc = tl.wait(tl.composite("gemm", part(a), part(b), acc=acc))
        (pointer, shape, pitch), bias = block.outs[0], block.bias
        products.append(
            tl.composite(
                "gemm",
                part(left),
                part(right),
                tl.ref(pointer, shape, strides=(pitch, 1)) if block.epilogue is None else None,
                acc=acc,
                bias=None if bias is None else part(bias),
            )
        )
    for block, product, others in zip(blocks, products, beside, strict=True):
        value = tl.wait(product)
        if block.epilogue is None:
            continue
        assert value is not None, "a product with an epilogue is a value"
        functions = tl.wait(tl.fused_async(block.epilogue, value, *map(tl.wait, others)))
        results = iter(functions)
        for number, out in zip(block.epilogue.results, block.outs, strict=True):
            stores.append(out.store(value if number == 0 else next(results)))
    for each in stores:
        tl.wait(each)
