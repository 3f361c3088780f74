"""The functions of `tl` that move blocks between memory and TCM, or describe a block in memory."""

from collections.abc import Sequence
from typing import Unpack

from runtime.language.atomics import AtomicOptions, checked_atomic
from runtime.language.context import PendingResult, PendingValue, running_kernel
from runtime.language.memory_in_flight import UsedBlock
from runtime.language.rows import RowGather, checked_rows
from runtime.language.shapes import (
    checked_out,
    checked_pointer,
    checked_row_strides,
    checked_shape,
    checked_strides,
    checked_value,
)
from runtime.language.value import Pointer, Ref, Shape, Value


def load(
    pointer: Pointer,
    shape: Shape | int,
    strides: tuple[int, ...] | None = None,
    *,
    out: Value | None = None,
) -> Value:
    """Copy a block of `shape` elements from memory to TCM, and wait for it.

    The block is row-major without gaps, or has one of `strides` for each axis: (row pitch, 1) is
    part of a row-major matrix, (plane pitch, row pitch, 1) part of a tensor of three axes, (1,
    pitch) a transposed matrix. A DMA descriptor holds rows at up to two pitches, so such a block is
    one request. An address outside every tensor is a `PageFaultError`.

    The elements go to scratch, or over the value `out` of the same shape and type, which is
    returned.
    """
    return running_kernel().load(*_checked_load("tl.load", pointer, shape, strides, out))


def load_async(
    pointer: Pointer,
    shape: Shape | int,
    strides: tuple[int, ...] | None = None,
    *,
    out: Value | None = None,
) -> PendingValue:
    """Start a load with the arguments of `load`; `wait` returns the value.

    The DMA engine has a few channels (`pe.dma.channels`), and further requests queue in their
    order. Commands that use `out` wait for the load. A command that writes to the block of memory
    before the kernel has waited for the load is a `KernelError`.
    """
    return running_kernel().load_async(
        *_checked_load("tl.load_async", pointer, shape, strides, out)
    )


def gather(
    pointer: Pointer,
    rows: Value | Sequence[int],
    shape: Shape | int,
    strides: tuple[int, ...] | None = None,
    *,
    out: Value | None = None,
) -> Value:
    """Copy the rows of a matrix that `rows` names from memory to TCM, and wait for them.

    Row r is the block of `shape` elements at `pointer + r * pitch`; the result has the shape
    `(len(rows), *shape)`, rows in the order of the list, in which a row may come several times.
    `strides` are the pitch of the rows and those of a row, as for a load of shape `(n, *shape)`; by
    default rows are row-major without gaps between and inside them.

    `rows` is a value of integers with one axis, or a sequence of Python integers, such as a page
    table among the arguments of the launch; a run with --no-data takes the latter only. The DMA
    reads the list from TCM and makes a descriptor for each row: one request, whose time has a part
    for each row. `out` is as in `load`.
    """
    return running_kernel().gather(
        *_checked_gather("tl.gather", pointer, rows, shape, strides, out)
    )


def gather_async(
    pointer: Pointer,
    rows: Value | Sequence[int],
    shape: Shape | int,
    strides: tuple[int, ...] | None = None,
    *,
    out: Value | None = None,
) -> PendingValue:
    """Start a gather with the arguments of `gather`; `wait` returns the value.

    Commands that write over `rows` or use `out` wait for the gather. A command that writes to the
    rows in memory before the kernel has waited for the gather is a `KernelError`.
    """
    return running_kernel().gather_async(
        *_checked_gather("tl.gather_async", pointer, rows, shape, strides, out)
    )


def store(pointer: Pointer, value: Value, strides: tuple[int, ...] | None = None) -> None:
    """Copy `value` to a block of memory, and wait until the memory has acknowledged it.

    The block is row-major without gaps, or has `strides` as in `load`. The pointer must have the
    value's element type.
    """
    running_kernel().store(*_checked_store("tl.store", pointer, value, strides))


def store_async(
    pointer: Pointer, value: Value, strides: tuple[int, ...] | None = None
) -> PendingResult:
    """Start a store with the arguments of `store`; `wait` returns None when the memory has
    acknowledged it.

    Commands that write over `value`, and the end of its scratch, wait for the store. A command that
    uses the block of memory before the kernel has waited for the store is a `KernelError`.
    """
    return running_kernel().store_async(*_checked_store("tl.store_async", pointer, value, strides))


def atomic(
    operation: str,
    pointer: Pointer,
    value: Value,
    strides: tuple[int, ...] | None = None,
    **options: Unpack[AtomicOptions],
) -> Value | None:
    """Combine `value` with the block of memory at `pointer`, at the memory; returns the elements
    that the block had, or None with `old=False`, when the memory has answered.

    `operation` is "add", "max", "min", "and", "or", "xor", "xchg" (the new elements are those of
    `value`) or "cas" (they are where the old ones have the bits of `compare`). "umax" and "umin"
    compare integers without a sign. Elements have 32 or 64 bits, or are of float16 or bfloat16;
    operations on bits take integers. `strides` and `out` are as in `load`.

    PEs of a launch may use one element without an order, if all use it by this function. `sem`
    orders other accesses: "release" puts what the kernel has stored before it, "acquire" puts what
    follows behind the releases of earlier operations on the elements, "acq_rel" does both,
    "relaxed" neither.
    """
    call = checked_atomic("tl.atomic", operation, pointer, value, strides, options)
    return running_kernel().atomic(call).wait()


def atomic_async(
    operation: str,
    pointer: Pointer,
    value: Value,
    strides: tuple[int, ...] | None = None,
    **options: Unpack[AtomicOptions],
) -> PendingResult:
    """Start what `atomic` does; `wait` returns the old elements, or None with `old=False`.

    A command that uses the block of memory before the kernel has waited is a `KernelError`.
    """
    call = checked_atomic("tl.atomic_async", operation, pointer, value, strides, options)
    return running_kernel().atomic(call)


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
    start, whole = checked_pointer(pointer, "tl.ref"), checked_shape(shape)
    if len(whole) != 2:
        raise ValueError(f"tl.ref of shape {whole}: a matrix has 2 axes")
    if blocked and strides is not None:
        raise ValueError(
            f"tl.ref with strides {strides} and blocked: the tiles of a blocked matrix have no gaps"
        )
    down, across = checked_strides(strides, whole)
    return Ref(start, (whole[0], whole[1]), (down, across), blocked)


def _checked_load(
    name: str,
    pointer: Pointer,
    shape: Shape | int,
    strides: tuple[int, ...] | None,
    out: Value | None,
) -> tuple[UsedBlock, Value | None]:
    source, whole = checked_pointer(pointer, name), checked_shape(shape)
    if out is not None:
        checked_out(out, whole, source.dtype, name)
    return UsedBlock(source, whole, checked_strides(strides, whole)), out


def _checked_gather(
    name: str,
    pointer: Pointer,
    rows: Value | Sequence[int],
    shape: Shape | int,
    strides: tuple[int, ...] | None,
    out: Value | None,
) -> tuple[RowGather, Value | None]:
    source, named, row = (
        checked_pointer(pointer, name),
        checked_rows(rows, name),
        checked_shape(shape),
    )
    if out is not None:
        checked_out(out, (len(named), *row), source.dtype, name)
    return RowGather(source, named, row, checked_row_strides(strides, row)), out


def _checked_store(
    name: str, pointer: Pointer, value: Value, strides: tuple[int, ...] | None
) -> tuple[UsedBlock, Value]:
    target, source = checked_pointer(pointer, name), checked_value(value, name)
    if target.dtype != source.dtype:
        raise TypeError(
            f"store of {source.dtype.name} through a pointer to {target.dtype.name}: convert with "
            "x.to(dtype) before"
        )
    return UsedBlock(target, source.shape, checked_strides(strides, source.shape)), source
