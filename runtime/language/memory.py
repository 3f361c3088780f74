"""The functions of `tl` that move blocks between memory and TCM, or describe a block in memory."""

from runtime.language.context import running_kernel
from runtime.language.shapes import (
    checked_pointer,
    checked_shape,
    checked_strides,
    checked_value,
)
from runtime.language.value import Pointer, Ref, Shape, Value


def load(pointer: Pointer, shape: Shape | int, strides: tuple[int, ...] | None = None) -> Value:
    """Copy a block of `shape` elements from memory to TCM, and wait for it.

    The block is row-major without gaps, or has one of `strides` for each axis: (row pitch, 1) is
    part of a row-major matrix, (plane pitch, row pitch, 1) part of a tensor of three axes, (1,
    pitch) a transposed matrix. A DMA descriptor holds rows at up to two pitches, so such a block is
    one request. An address outside every tensor is a `PageFaultError`.
    """
    whole = checked_shape(shape)
    return running_kernel().load(
        checked_pointer(pointer, "tl.load"), whole, checked_strides(strides, whole)
    )


def store(pointer: Pointer, value: Value, strides: tuple[int, ...] | None = None) -> None:
    """Copy `value` to a block of memory, and wait until the memory has acknowledged it.

    The block is row-major without gaps, or has `strides` as in `load`. The pointer must have the
    value's element type.
    """
    target, source = checked_pointer(pointer, "tl.store"), checked_value(value, "tl.store")
    if target.dtype != source.dtype:
        raise TypeError(
            f"store of {source.dtype.name} through a pointer to {target.dtype.name}: convert with "
            "x.to(dtype) before"
        )
    running_kernel().store(target, source, checked_strides(strides, source.shape))


def ref(
    pointer: Pointer,
    shape: tuple[int, int],
    strides: tuple[int, int] | None = None,
    *,
    blocked: bool = False,
) -> Ref:
    """A matrix in memory that `composite` streams tile by tile. No data moves.

    `strides` is (row pitch, 1), or (1, pitch) for a matrix that lies transposed. A `blocked` matrix
    is stored tile after tile, row by row of tiles, each tile row-major without gaps; tiles at the
    ends have the size of the remainder. The tiles are those of the operand: (m, k) of `gemm_tile()`
    for `a`, (k, n) for `b`, (m, n) for `out`.
    """
    at, whole = checked_pointer(pointer, "tl.ref"), checked_shape(shape)
    if len(whole) != 2:
        raise ValueError(f"tl.ref of shape {whole}: a matrix has 2 axes")
    if blocked and strides is not None:
        raise ValueError(
            f"tl.ref with strides {strides} and blocked: the tiles of a blocked matrix have no gaps"
        )
    down, across = checked_strides(strides, whole)
    return Ref(at, (whole[0], whole[1]), (down, across), blocked)
