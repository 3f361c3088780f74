"""The reduction operations of all-reduce, reduce and reduce-scatter, as kernels compute them."""

from enum import Enum

from runtime.language import tl
from runtime.language.value import Value


class ReduceOp(Enum):
    """An elementwise reduction in the element type of the tensor; integers wrap round.

    `AVG` sums and divides once at the end, so a sum that overflows is an infinite average. It is
    defined for floating-point types.
    """

    SUM = "sum"
    AVG = "avg"
    MAX = "max"
    MIN = "min"
    PRODUCT = "product"

    def combine(self, own: Value, received: Value) -> Value:
        """Kernel: combine two contributions, or partial results of several."""
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
        """Kernel: the result, from the combination of all contributions."""
        return combined / contributions if self is ReduceOp.AVG and contributions > 1 else combined
