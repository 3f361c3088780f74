"""The kernel language: a kernel is plain blocking Python that every PE of a launch runs on its part
of the work.

def scale(x, n):
    offset = tl.program_id(0) * n
    tl.store(x + offset, tl.load(x + offset, (n,)) * 2.0)

A tensor is passed as a pointer. `load` copies a block of memory to the PE's TCM as a value;
operators and the functions of `runtime.language.vector` compute values; `dot` and `composite` run
matrix products on the GEMM engine; `send` and `recv` exchange values with neighbours. Blocks are
exact: a shape that no tile divides needs no mask. Sizes, strides and pointer arithmetic count
elements. An operation that the hardware or the language does not support is a `KernelError` with
the kernel, its line and the PE.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, NoReturn, overload

from runtime.core.dtypes import (
    DType,
    bfloat16,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
)
from runtime.core.dtypes import boolean as int1
from runtime.core.errors import nearest
from runtime.language.context import PendingResult, inner_scope, running_kernel
from runtime.language.gemm import checked_gemm
from runtime.language.shapes import (
    checked_dtype,
    checked_pointer,
    checked_shape,
    checked_strides,
    checked_value,
)
from runtime.language.value import Pointer, Ref, Shape, Value, check_exists
from runtime.language.vector import (
    abs,  # noqa: A004 - Triton's names
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    cat,
    clamp,
    cos,
    div,
    exp,
    fma,
    full,
    gelu,
    log,
    max,  # noqa: A004
    maximum,
    min,  # noqa: A004
    minimum,
    mul,
    relu,
    sigmoid,
    silu,
    sin,
    softmax,
    sqrt,
    sub,
    sum,  # noqa: A004
    tanh,
    trans,
    zeros,
)
from runtime.model.tiles import TileSize

__all__ = [
    "DType",
    "PendingResult",
    "Pointer",
    "Ref",
    "TileSize",
    "Value",
    "abs",
    "add",
    "bfloat16",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "cat",
    "cdiv",
    "clamp",
    "composite",
    "cos",
    "div",
    "dot",
    "exp",
    "float16",
    "float32",
    "float64",
    "fma",
    "full",
    "gelu",
    "gemm_tile",
    "int1",
    "int8",
    "int32",
    "int64",
    "load",
    "log",
    "max",
    "maximum",
    "min",
    "minimum",
    "mul",
    "num_programs",
    "program_id",
    "recv",
    "recv_async",
    "ref",
    "relu",
    "scratch",
    "send",
    "sigmoid",
    "silu",
    "sin",
    "softmax",
    "sqrt",
    "store",
    "sub",
    "sum",
    "tanh",
    "trans",
    "uint8",
    "wait",
    "zeros",
]

Space = Literal["tcm", "hbm"]


def program_id(axis: int) -> int:
    """The number of the PE in its cube (axis 0) or of the cube in its SIP (axis 1)."""
    return running_kernel().program_id(axis)


def num_programs(axis: int) -> int:
    """The number of PEs per cube (axis 0) or of cubes (axis 1) that run this launch."""
    return running_kernel().num_programs(axis)


def cdiv(a: int, b: int) -> int:
    """Ceiling division of plain integers."""
    return -(-a // b)


def gemm_tile() -> TileSize:
    """Rows, depth and columns (m, k, n) of the GEMM engine's tile. Products of whole tiles use the
    engine best.
    """
    return running_kernel().gemm_tile


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


def dot(
    a: Value | Ref, b: Value | Ref, acc: Value | None = None, out_dtype: DType | None = None
) -> Value:
    """The matrix product `acc + a @ b` as a value in TCM: `composite` and `wait` in one.

    `a` (m, k) and `b` (k, n) have one type of f16, bf16, f32 and i8. Products are summed in float32
    (int32 for i8), the type of `acc` and by default of the result, rounded once to `out_dtype`.
    """
    result = running_kernel().gemm(checked_gemm(a, b, acc=acc, out_dtype=out_dtype)).wait()
    assert result is not None
    return result


def composite(
    kind: Literal["gemm"],
    a: Value | Ref,
    b: Value | Ref,
    out: Ref | None = None,
    *,
    acc: Value | None = None,
    bias: Value | None = None,
    activation: str | None = None,
    out_dtype: DType | None = None,
) -> PendingResult:
    """Queue `activation(acc + a @ b + bias)` at the PE's scheduler; `wait` for the result.

    The scheduler cuts the product into tiles and pipelines them through DMA and engines; several
    composites may be in flight. Operands are staged (`Value`) or streamed (`ref`); the result is
    streamed to `out`, or stays in TCM as a value. Before it is complete, the kernel must not write
    operands or `out`.

    `acc` (m, n) is of the type in which products are summed: float32, or int32 for i8. `bias` (n,)
    or (1, n) and then the activation (`relu`, `gelu`, `silu`, `sigmoid`, `tanh`) are applied in
    that type, before the one rounding to the type of the result: that of `out`, else `out_dtype`,
    else the type of the sum.
    """
    if kind != "gemm":
        raise ValueError(
            f"tl.composite of kind {kind!r}: the scheduler has no such plan"
            f"{nearest(str(kind), ('gemm',))}"
        )
    gemm = checked_gemm(a, b, out, acc=acc, bias=bias, activation=activation, out_dtype=out_dtype)
    return running_kernel().gemm(gemm)


def wait(pending: PendingResult) -> Value | None:
    """Wait for the result of `composite` or `recv_async`: its value, or None if the result is in
    memory.
    """
    if not callable(getattr(pending, "wait", None)):
        given = f"{type(pending).__name__} {pending!r}"
        raise TypeError(f"tl.wait takes a result of tl.composite or tl.recv_async, not {given}")
    return pending.wait()


def send(direction: str, value: Value) -> None:
    """Send `value` to the neighbour in `direction` (`E`, `W`, `N`, `S`, `global_E` ...); waits
    while its receive ring is full.

    A value larger than a slot is sent as several slots.
    """
    running_kernel().send(_direction(direction, "tl.send"), checked_value(value, "tl.send"))


@overload
def recv(
    direction: str | None = None,
    shape: Shape | int | None = None,
    dtype: DType | None = None,
    *,
    dst_addr: Value | None = None,
    dst_space: Space | None = None,
) -> Value: ...
@overload
def recv(
    direction: str | None = None,
    shape: Shape | int | None = None,
    dtype: DType | None = None,
    *,
    dst_addr: Pointer,
    dst_space: Space | None = None,
) -> None: ...
def recv(
    direction: str | None = None,
    shape: Shape | int | None = None,
    dtype: DType | None = None,
    *,
    dst_addr: Value | Pointer | None = None,
    dst_space: Space | None = None,
) -> Value | None:
    """Wait for the next value from `direction`, or from any direction in turn. Shape and type must
    be those of the send.

    The value is copied to scratch, or to `dst_addr`: over a value in TCM (`dst_space` "tcm"), which
    is returned and is the default of shape and type, or to memory at a pointer (`dst_space` "hbm"),
    with None as the result.
    """
    return recv_async(direction, shape, dtype, dst_addr=dst_addr, dst_space=dst_space).wait()


def recv_async(
    direction: str | None = None,
    shape: Shape | int | None = None,
    dtype: DType | None = None,
    *,
    dst_addr: Value | Pointer | None = None,
    dst_space: Space | None = None,
) -> PendingResult:
    """Post a receive with the arguments of `recv`; `wait` for the result.

    Receives from one direction complete in the order in which they were posted.
    """
    if direction is not None:
        _direction(direction, "tl.recv")
    target = _target(dst_addr, dst_space)
    if isinstance(target, Value) and shape is None:
        shape = target.shape
    # A pointer and a value have an element type; only a value has a shape, too.
    if target is not None and dtype is None:
        dtype = target.dtype
    if shape is None:
        raise TypeError("tl.recv needs the shape of the value that was sent")
    whole, element = checked_shape(shape), checked_dtype(dtype, "tl.recv")
    if target is not None:
        _check_fit(target, whole, element)
    return running_kernel().recv(direction, whole, element, target)


@contextmanager
def scratch() -> Generator[None]:
    """`with tl.scratch():` frees, at the end of the block, the TCM of values made inside; using
    them after it is a `KernelError`.
    """
    with running_kernel().scratch(), inner_scope():
        yield


def _direction(direction: object, operation: str) -> str:
    if isinstance(direction, str):
        return direction
    raise TypeError(
        f"{operation} takes a direction such as 'E', not {type(direction).__name__} {direction!r}"
    )


def _target(dst_addr: object, dst_space: object) -> Value | Pointer | None:
    if dst_addr is None:
        if dst_space is not None:
            raise TypeError(
                f"tl.recv with dst_space {dst_space!r} needs dst_addr, the target of the copy"
            )
        return None
    if isinstance(dst_addr, Value):
        check_exists(dst_addr, "tl.recv")
    if not isinstance(dst_addr, Value | Pointer):
        given = f"{type(dst_addr).__name__} {dst_addr!r}"
        raise TypeError(f"tl.recv: dst_addr is a value in TCM or a pointer to memory, not {given}")
    space, kind = (
        ("tcm", "value in TCM") if isinstance(dst_addr, Value) else ("hbm", "pointer to memory")
    )
    if dst_space not in (None, space):
        raise ValueError(
            f"tl.recv: dst_addr is a {kind}, so dst_space is {space!r}, not {dst_space!r}"
        )
    return dst_addr


def _check_fit(target: Value | Pointer, shape: Shape, dtype: DType) -> None:
    if target.dtype != dtype:
        raise TypeError(
            f"tl.recv of {dtype.name} to elements of {target.dtype.name}; they must be equal"
        )
    if isinstance(target, Value) and target.shape != shape:
        raise ValueError(
            f"tl.recv of shape {shape} over a value of shape {target.shape}; they must be equal"
        )


if not TYPE_CHECKING:
    # With this function in sight, a type checker would accept every attribute.
    def __getattr__(name: str) -> NoReturn:
        raise AttributeError(f"kernbench's tl has no {name}{nearest(name, __all__)}")
