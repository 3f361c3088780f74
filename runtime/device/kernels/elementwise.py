"""Single operations of the vector engine on tensors and numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.core.dtypes import DType, boolean
from runtime.device.kernels.pointwise import pointwise
from runtime.device.regions.blocks import BlockLimits
from runtime.device.regions.regions import Region
from runtime.language.context import running_kernel
from runtime.language.functions import COMPARISONS
from runtime.language.value import Pointer, Value


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

    def value(self, *operands: Value) -> Value:
        """The result of operands in `dtype`."""
        if not self.name:
            return operands[0]
        arguments = [
            operands[each.position] if isinstance(each, Loaded) else each for each in self.arguments
        ]
        return running_kernel().math(self.name, arguments)

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
    """Kernel: `formula` on the regions of this PE, in blocks of at most `block` elements, each
    operation as a command of its own: a program of single operators has nothing to overlap.
    """
    limits = BlockLimits.in_turn(block)
    pointwise(formula.value, formula.dtype, parts, limits, out, tensors)
