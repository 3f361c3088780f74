"""Element types, shared by tensors, kernels and the op log.

numpy is imported with the first array: a process that only forwards the names needs none.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import numpy as np


_OF_ML_DTYPES = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2"})
"""Types that numpy has from another package."""


@dataclass(frozen=True)
class DType:
    """One element type: `name` is its short name in the op log (`f16`), `torch_name` PyTorch's.

    An element has `itemsize` bytes. Integers and bool are not floating-point; of a floating-point
    type, `fraction_bits` are the bits behind the leading one. Conversions on the hardware to a type
    that `saturates` give its greatest number instead of an infinity.
    """

    name: str
    torch_name: str
    itemsize: int
    fraction_bits: int = 0
    saturates: bool = False

    @property
    def is_floating_point(self) -> bool:
        """Whether elements have a fraction."""
        return self.fraction_bits > 0

    @property
    def all_ones(self) -> int:
        """The element of an integer type, or of bool, whose bits are all set."""
        return 1 if self.numpy.kind == "b" else -1 if self.numpy.kind == "i" else 255

    @cached_property
    def numpy(self) -> "np.dtype[np.generic]":
        """The element type of arrays."""
        import numpy as np

        if self.torch_name not in _OF_ML_DTYPES:
            return np.dtype(self.torch_name)
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, self.torch_name))

    @cached_property
    def limits(self) -> "np.finfo[Any]":
        """Precision and range of a floating-point type, by the names of numpy's `finfo`."""
        if self.torch_name not in _OF_ML_DTYPES:
            import numpy as np

            return np.finfo(self.numpy.name)
        # Few programs need the package, and it takes 2.5 MB of a process.
        import ml_dtypes

        return cast("Any", ml_dtypes.finfo)(self.numpy)

    @property
    def greatest(self) -> float:
        """The greatest finite number of a floating-point type."""
        return float(self.limits.max)

    def holds(self, number: float) -> bool:
        """Whether a Python number can be an operand beside a value of this type.

        A floating-point type takes any number, an integer type only integers within its range, bool
        0 and 1.
        """
        if self.is_floating_point:
            return True
        if self.numpy.kind == "b":
            return number in (0, 1)
        import numpy as np

        limits = np.iinfo(self.numpy.name)
        # 2.0 is an integer, 2.5 is not; Python's own numbers have no range.
        return int(number) == number and limits.min <= number <= limits.max

    def counts(self, number: int) -> bool:
        """Whether this type has an integer exactly, and all integers between it and 0."""
        if self.is_floating_point:
            # With p significant bits, one more than `fraction_bits`, all integers up to 2^p are
            # exact, and 2^p + 1 is the first that is not.
            return abs(number) <= 2 << self.fraction_bits
        return self.holds(number)

    def __repr__(self) -> str:
        return f"torch.{self.torch_name}"


# IEEE 754 binary16, and bfloat16, the upper half of a binary32: both with infinities and NaN.
float16 = DType("f16", "float16", 2, fraction_bits=10)
bfloat16 = DType("bf16", "bfloat16", 2, fraction_bits=7)
float32 = DType("f32", "float32", 4, fraction_bits=23)
int8 = DType("i8", "int8", 1)
int32 = DType("i32", "int32", 4)
int64 = DType("i64", "int64", 8)
uint8 = DType("u8", "uint8", 1)
boolean = DType("bool", "bool", 1)
float64 = DType("f64", "float64", 8, fraction_bits=52)

# OFP8 of the Open Compute Project: e4m3 has no infinities, its greatest number is 448; e5m2 is laid
# out like binary16, its greatest number is 57,344.
float8e4nv = DType("f8e4m3", "float8_e4m3fn", 1, fraction_bits=3, saturates=True)
float8e5 = DType("f8e5m2", "float8_e5m2", 1, fraction_bits=2, saturates=True)

# A packet names a type by its index (`TransferHeader.element`), so a new type comes last.
ALL = (
    *(float16, bfloat16, float32, int8, int32, int64, uint8, boolean, float64),
    *(float8e4nv, float8e5),
)
"""All element types, in the order of their numbers in packets."""
BY_NAME = {each.name: each for each in ALL}
"""The element types by their names in the op log."""


def from_numpy(dtype: "np.dtype[np.generic]") -> DType:
    """The element type of a numpy array; `TypeError` for a type that the hardware lacks."""
    for known in ALL:
        if known.numpy == dtype:
            return known
    supported = ", ".join(str(known.numpy) for known in ALL)
    raise TypeError(f"dtype {dtype} does not exist on this hardware; convert to one of {supported}")
