"""Element types, shared by tensors, kernels and the op log."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class DType:
    """One element type: `name` is its short name in the op log (`f16`), `torch_name` PyTorch's."""

    name: str
    torch_name: str
    numpy: np.dtype[np.generic]

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.numpy.itemsize

    @property
    def is_floating_point(self) -> bool:
        """Whether the type has a fraction; integers and bool have none."""
        return self.numpy.kind not in "iub"

    def holds(self, number: float) -> bool:
        """Whether a Python number can be an operand beside a value of this type.

        A floating-point type takes any number, an integer type only integers within its range, bool
        0 and 1.
        """
        if self.is_floating_point:
            return True
        if self.numpy.kind == "b":
            return number in (0, 1)
        limits = np.iinfo(self.numpy.name)
        # 2.0 is an integer, 2.5 is not; Python's own numbers have no range.
        return int(number) == number and limits.min <= number <= limits.max

    def __repr__(self) -> str:
        return f"torch.{self.torch_name}"


float16 = DType("f16", "float16", np.dtype(np.float16))
bfloat16 = DType("bf16", "bfloat16", np.dtype(ml_dtypes.bfloat16))
float32 = DType("f32", "float32", np.dtype(np.float32))
int8 = DType("i8", "int8", np.dtype(np.int8))
int32 = DType("i32", "int32", np.dtype(np.int32))
int64 = DType("i64", "int64", np.dtype(np.int64))
uint8 = DType("u8", "uint8", np.dtype(np.uint8))
boolean = DType("bool", "bool", np.dtype(np.bool_))
float64 = DType("f64", "float64", np.dtype(np.float64))

ALL = (float16, bfloat16, float32, int8, int32, int64, uint8, boolean, float64)
"""All element types, in the order of their numbers in packets."""


def from_numpy(dtype: np.dtype[np.generic]) -> DType:
    """The element type of a numpy array; `TypeError` for a type that the hardware lacks."""
    for known in ALL:
        if known.numpy == dtype:
            return known
    supported = ", ".join(str(known.numpy) for known in ALL)
    raise TypeError(f"dtype {dtype} does not exist on this hardware; convert to one of {supported}")
