"""How contributions are combined: the operations of all-reduce, reduce and reduce-scatter."""

from enum import Enum

from runtime.language import tl
from runtime.language.value import Value


class ReduceOp(Enum):
    """How contributions are combined, element by element, in the element type of the tensor:
    integers wrap round.

    `AVG` sums and divides once at the end, so a sum that overflows is an infinite average; it is
    for floating-point types.
    """

    SUM = "sum"
    AVG = "avg"
    MAX = "max"
    MIN = "min"
    PRODUCT = "product"

    def combine(self, own: Value, received: Value) -> Value:
        """Kernel: two contributions, or what was combined of several, as one."""
        match self:
            case ReduceOp.SUM | ReduceOp.AVG:
                return own + received
            case ReduceOp.MAX:
                return tl.maximum(own, received)
            case ReduceOp.MIN:
                return tl.minimum(own, received)
            case ReduceOp.PRODUCT:
                return own * received

    def finish(self, combined: Value, contributions: int) -> Value:
        """Kernel: the result, from all contributions combined."""
        return combined / contributions if self is ReduceOp.AVG and contributions > 1 else combined
