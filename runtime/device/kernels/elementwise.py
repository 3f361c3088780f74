"""The shipped kernel of elementwise operations: load, convert, compute, convert, store, block by
block.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.core.dtypes import DType, boolean
from runtime.language import tl
from runtime.language.context import running_kernel
from runtime.language.functions import COMPARISONS
from runtime.language.value import Pointer, Value
from runtime.torch.arithmetic.regions import Region, RegionBlock, blocks


@dataclass(frozen=True)
class Formula:
    """One operation of the vector engine on tensors and numbers.

    `arguments` are numbers of tensors, as `Loaded`, and Python numbers. Tensors are converted to
    `dtype`, in which the engine computes, and the result to the type of the target. An empty `name`
    only converts.
    """

    name: str
    arguments: tuple["Loaded | float", ...]
    dtype: DType

    @property
    def result(self) -> DType:
        """The type in which the engine delivers the result."""
        return boolean if self.name in COMPARISONS else self.dtype

    def scratch_bytes(self, loaded: Sequence[DType], out: DType) -> int:
        """Scratch for one element: each tensor, each conversion, the result."""
        before = sum(
            each.itemsize + (self.dtype.itemsize if each != self.dtype else 0) for each in loaded
        )
        computed = self.result.itemsize if self.name else 0
        return before + computed + (out.itemsize if out != self.result else 0)


@dataclass(frozen=True)
class Loaded:
    """An operand that is a tensor, by its position among those of the launch."""

    position: int


def elementwise(
    formula: Formula,
    parts: Sequence[Region],
    block: int,
    out: Pointer,
    tensors: Sequence[Pointer],
) -> None:
    """Kernel: `formula` on the regions of this PE, in blocks of at most `block` elements."""
    for region in parts:
        for each in blocks(region, block):
            with tl.scratch():
                result = _value_of(
                    formula, [_loaded(each, *item) for item in enumerate(tensors, 1)]
                )
                if result.dtype != out.dtype:
                    result = result.to(out.dtype)
                tl.store(out + each.starts[0], result, _pitch(each, 0, result.shape))


def _value_of(formula: Formula, loaded: Sequence[Value]) -> Value:
    operands = [each if each.dtype == formula.dtype else each.to(formula.dtype) for each in loaded]
    if not formula.name:
        return operands[0]
    arguments = [
        operands[each.position] if isinstance(each, Loaded) else each for each in formula.arguments
    ]
    return running_kernel().math(formula.name, arguments)


def _loaded(block: RegionBlock, tensor: int, pointer: Pointer) -> Value:
    by_row, by_column = block.strides[tensor]
    # Along an axis where it is repeated, a tensor has one element.
    shape = (block.rows if by_row else 1, block.columns if by_column else 1)
    return tl.load(pointer + block.starts[tensor], shape, _pitch(block, tensor, shape))


def _pitch(block: RegionBlock, tensor: int, shape: tuple[int, ...]) -> tuple[int, int] | None:
    return (block.strides[tensor][0], 1) if shape[0] > 1 else None
