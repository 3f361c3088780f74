"""The reduction operations of all-reduce, reduce and reduce-scatter, as kernels compute them."""

from enum import Enum

from runtime.core.dtypes import DType, boolean
from runtime.language.context import running_kernel
from runtime.language.value import Value


class ReduceOp(Enum):
    """An elementwise reduction in the element type of the tensor; integers wrap round.

    `AVG` sums and divides once at the end, so a sum that overflows is an infinite average. It is
    defined for floating-point types, `BAND`, `BOR` and `BXOR` (bit by bit) for the others.
    """

    SUM = "sum"
    AVG = "avg"
    MAX = "max"
    MIN = "min"
    PRODUCT = "product"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"

    @property
    def is_bitwise(self) -> bool:
        """Whether the operation combines bits and not numbers."""
        return self in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)

    def is_defined_for(self, dtype: DType) -> bool:
        """Whether elements of this type can be combined."""
        return not self.is_bitwise if dtype.is_floating_point else self is not ReduceOp.AVG

    def combine(self, own: Value, received: Value, out: Value | None = None) -> Value:
        """Kernel: combine two contributions, or partial results of several; over `out` if given."""
        function = _FUNCTIONS[self]
        # Sequences of operations and no sets: the hash of an Enum is a function in Python.
        if self in (ReduceOp.SUM, ReduceOp.PRODUCT) and own.dtype.name == boolean.name:
            # As in PyTorch: a sum of bools is whether one is true, a product whether all are.
            function = "maximum" if self is ReduceOp.SUM else "minimum"
        return running_kernel().math(function, (own, received), out=out)

    def finish(self, combined: Value, contributions: int, out: Value | None = None) -> Value:
        """Kernel: the result, from the combination of all contributions; over `out` if given."""
        # One division of the whole sum rounds once; a division of every contribution would round
        # each.
        if self is ReduceOp.AVG and contributions > 1:
            return running_kernel().math("div", (combined, contributions), out=out)
        return combined


_FUNCTIONS = {
    ReduceOp.SUM: "add",
    ReduceOp.AVG: "add",
    ReduceOp.PRODUCT: "mul",
    ReduceOp.MAX: "maximum",
    ReduceOp.MIN: "minimum",
    ReduceOp.BAND: "bitwise_and",
    ReduceOp.BOR: "bitwise_or",
    ReduceOp.BXOR: "bitwise_xor",
}
"""Functions of the vector engine."""
