"""Element types and blocks of the op log: sizes, precision, and the contiguous pieces of a block.

The types are defined here once more, because the replay shares no code with the simulation.
"""

from collections.abc import Iterator
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from runtime.core.trace import Operand, OpRecord

Array = np.ndarray[Any, np.dtype[Any]]

NUMPY: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "i8": np.dtype(np.int8),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "bool": np.dtype(np.bool_),
    "f64": np.dtype(np.float64),
    "f8e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
"""The element types of the op log; `u8` also stands for bytes of no particular type."""

EPS = {
    "f16": 2.0**-10,
    "bf16": 2.0**-7,
    "f32": 2.0**-23,
    "f64": 2.0**-52,
    "f8e4m3": 2.0**-3,
    "f8e5m2": 2.0**-2,
}
"""The distance from 1 to the next number of a floating-point type; other types are exact."""
LEAST_NORMAL = {
    "f16": 2.0**-14,
    "bf16": 2.0**-126,
    "f32": 2.0**-126,
    "f64": 2.0**-1022,
    "f8e4m3": 2.0**-6,
    "f8e5m2": 2.0**-14,
}
"""The least normal magnitude: below it the spacing of the numbers of a type is constant."""


SATURATED = {NUMPY["f8e4m3"]: 448.0, NUMPY["f8e5m2"]: 57344.0}
"""The greatest magnitude of the types whose conversions saturate.

OCP 8-bit Floating Point Specification (OFP8), revision 1.0, tables 1 and 2.
"""


def is_float(dtype: str) -> bool:
    """Whether elements of the type have a fraction."""
    return dtype in EPS


def result_of(record: OpRecord) -> Operand:
    """The block that the operation writes."""
    return Operand(record.address, record.shape, record.dtype, record.strides)


def size_of(block: Operand) -> int:
    """Bytes of the elements of a block."""
    return prod(block.shape) * NUMPY[block.dtype].itemsize


def check_block(block: Operand) -> None:
    """`ValueError` for an impossible block: unknown type, negative length, wrong strides."""
    if block.dtype not in NUMPY:
        raise ValueError(f"element type {block.dtype!r} is not known")
    if any(length < 0 for length in block.shape):
        raise ValueError(f"shape {block.shape} has a negative length")
    if block.strides and len(block.strides) != len(block.shape):
        raise ValueError(f"strides {block.strides} do not fit shape {block.shape}")


def pieces(block: Operand) -> Iterator[tuple[int, int]]:
    """(address, bytes) of the contiguous pieces of a block, in row-major order of its elements."""
    item = NUMPY[block.dtype].itemsize
    count = prod(block.shape)
    if not count:
        return
    if not block.strides:
        yield block.address, count * item
        return
    axes = [
        (length, stride)
        for length, stride in zip(block.shape, block.strides, strict=True)
        if length > 1
    ]
    run = 1
    # Inner axes without gaps form one contiguous run.
    while axes and axes[-1][1] == run:
        run *= axes.pop()[0]
    offsets = [0]
    for length, stride in axes:
        # The remaining axes are enumerated in row-major order, the order of the elements.
        offsets = [offset + index * stride for offset in offsets for index in range(length)]
    for offset in offsets:
        yield block.address + offset * item, run * item
