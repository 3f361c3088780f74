"""The element types of PyTorch and those of the hardware."""

import torch

from runtime.core import dtypes
from runtime.core.dtypes import DType

_HARDWARE = {getattr(torch, each.torch_name): each for each in dtypes.ALL}
_OF_SIZE = {1: dtypes.uint8, 2: dtypes.float16, 4: dtypes.int32, 8: dtypes.int64}
COMPUTED = frozenset(_HARDWARE) - {torch.float8_e4m3fn, torch.float8_e5m2}
"""The types with which the vector engine computes."""
INTEGERS = frozenset(each for each in COMPUTED if not each.is_floating_point)
"""The types of them that have bits for bitwise operators: integers and bool."""
FLOATS = COMPUTED - INTEGERS
"""The others, for functions that a CPU has for floating-point numbers alone."""


def hardware_type(dtype: torch.dtype) -> DType:
    """The type of the hardware; `KeyError` where it has none."""
    return _HARDWARE[dtype]


def moved_as(dtype: torch.dtype) -> DType | None:
    """The type in which elements are copied bit by bit; None if no type has their size."""
    return _HARDWARE.get(dtype) or _OF_SIZE.get(dtype.itemsize)


def computed_in(*given: torch.dtype) -> torch.dtype:
    """The type in which the vector engine computes with elements of these types: float32 for the
    smaller floating-point types, whose results are rounded once.
    """
    wide = given[0]
    for each in given[1:]:
        wide = torch.promote_types(wide, each)
    return torch.float32 if wide in {torch.float16, torch.bfloat16} else wide
