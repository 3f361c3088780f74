"""The conversions of a tensor that are named by an element type.

In a class of their own: in its body, names such as `float` are the methods.
"""

from typing import Self

from runtime.core.dtypes import (
    bfloat16,
    boolean,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
)
from runtime.torch.tensors.tensor_methods import TensorMethods


class TensorConversions(TensorMethods):
    """Each method is `to` with an element type."""

    def float(self) -> Self:
        """The tensor as float32."""
        return self._changed(float32)

    def double(self) -> Self:
        """The tensor as float64."""
        return self._changed(float64)

    def half(self) -> Self:
        """The tensor as float16."""
        return self._changed(float16)

    def bfloat16(self) -> Self:
        """The tensor as bfloat16."""
        return self._changed(bfloat16)

    def int(self) -> Self:
        """The tensor as int32."""
        return self._changed(int32)

    def long(self) -> Self:
        """The tensor as int64."""
        return self._changed(int64)

    def char(self) -> Self:
        """The tensor as int8."""
        return self._changed(int8)

    def byte(self) -> Self:
        """The tensor as uint8."""
        return self._changed(uint8)

    def bool(self) -> Self:
        """The tensor as bool: whether an element is not 0."""
        return self._changed(boolean)
