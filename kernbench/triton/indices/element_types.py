"""The element types of Triton and those of the PE."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from runtime.core import dtypes
from runtime.core.dtypes import DType

DTYPES: Mapping[str, DType] = {
    "int1": dtypes.boolean,
    "int8": dtypes.int8,
    "uint8": dtypes.uint8,
    "int32": dtypes.int32,
    "int64": dtypes.int64,
    "fp16": dtypes.float16,
    "bf16": dtypes.bfloat16,
    "fp32": dtypes.float32,
    "fp64": dtypes.float64,
    "fp8e4nv": dtypes.float8e4nv,
    "fp8e5": dtypes.float8e5,
}
"""The types of the PE by the names of Triton."""
WIDENED: Mapping[str, DType] = {
    "int16": dtypes.int32,
    "uint16": dtypes.int32,
    "uint32": dtypes.int64,
}
"""Integer types of Triton that the PE lacks, and the type in which it computes with them: a result
keeps the low bits.
"""
BITS: Mapping[str, int] = {"int16": 16, "uint16": 16, "uint32": 32}
LIMITS: Mapping[str, tuple[int, int]] = {
    name: (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for bits in (8, 16, 32, 64)
    for name in (f"int{bits}", f"uint{bits}")
}
"""The least and the greatest integer of a type."""
_ATTRIBUTES: Mapping[str, str] = {
    "bool": "int1",
    "float8_e4m3fn": "float8e4nv",
    "float8_e5m2": "float8e5",
}
_ARRAYS: Mapping[str, str] = {
    "int16": "int16",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
}


def memory_type(dtype: Any) -> DType:
    """The type of elements in memory; `TypeError` for one that the PE lacks."""
    name = _name(dtype)
    known = DTYPES.get(name)
    if known is None:
        wider = WIDENED.get(name) or (dtypes.int64 if name == "uint64" else None)
        advice = f"; convert to {wider.torch_name}" if wider is not None else ""
        raise TypeError(
            f"the PE has no elements of type {name}: it has {', '.join(sorted(DTYPES))}{advice}"
        )
    return known


def item_bytes(dtype: Any) -> int:
    """The bytes from an element to the next one, of any type that pointers may have."""
    return max(1, int(dtype.scalar.primitive_bitwidth) // 8)


def value_type(dtype: Any) -> DType:
    """The type in TCM of a value of Triton's type; `TypeError` for one that the PE lacks."""
    return WIDENED.get(_name(dtype)) or memory_type(dtype)


def triton_name(dtype: DType) -> str:
    """The name of an element type in `triton.language`, such as `float32`."""
    return _ATTRIBUTES.get(dtype.torch_name, dtype.torch_name)


@cache
def array_type(name: str) -> "np.dtype[Any]":
    """The element type of arrays of the host side; addresses have the name `pointer`."""
    if name == "pointer":
        return np.dtype(np.int64)
    known = DTYPES.get(name)
    return known.numpy if known is not None else np.dtype(_ARRAYS[name])


def type_name(dtype: Any) -> str:
    """The short name of a scalar type of Triton; `pointer` for those of pointers."""
    return "pointer" if dtype.is_ptr() else _name(dtype)


def _name(dtype: Any) -> str:
    return str(dtype.scalar.name)
