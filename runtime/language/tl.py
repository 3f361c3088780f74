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
from typing import TYPE_CHECKING, NoReturn, overload

from runtime.core.dtypes import (
    DType,
    bfloat16,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
)
from runtime.core.dtypes import boolean as int1
from runtime.language.chains.fused import fused, fused_async
from runtime.language.context import (
    PendingResult,
    PendingValue,
    PendingValues,
    running_kernel,
)
from runtime.language.debugging import device_assert, device_print
from runtime.language.memory import (
    atomic,
    atomic_async,
    gather,
    gather_async,
    load,
    load_async,
    ref,
    store,
    store_async,
)
from runtime.language.messages import barrier, recv, recv_async, release, send, send_async
from runtime.language.other_languages import absent_name
from runtime.language.products import composite, dot
from runtime.language.running import inner_scope
from runtime.language.shapes import checked_dtype, checked_shape
from runtime.language.value import Pointer, Ref, Value
from runtime.language.vector import (
    abs,  # noqa: A004 - Triton's names
    add,
    arange,
    argmax,
    argmin,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    cat,
    ceil,
    clamp,
    cos,
    cumsum,
    div,
    erf,
    exp,
    exp2,
    expand_dims,
    floor,
    fma,
    full,
    gelu,
    log,
    log2,
    max,  # noqa: A004
    maximum,
    min,  # noqa: A004
    minimum,
    mul,
    pow,  # noqa: A004
    relu,
    reshape,
    round,  # noqa: A004
    rsqrt,
    sigmoid,
    silu,
    sin,
    softmax,
    sqrt,
    sub,
    sum,  # noqa: A004
    tanh,
    trans,
    where,
    zeros,
)
from runtime.model.tiles import TileSize

__all__ = [
    "DType",
    "PendingResult",
    "PendingValue",
    "PendingValues",
    "Pointer",
    "Ref",
    "TileSize",
    "Value",
    "abs",
    "add",
    "arange",
    "argmax",
    "argmin",
    "atomic",
    "atomic_async",
    "barrier",
    "bfloat16",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "cat",
    "cdiv",
    "ceil",
    "clamp",
    "composite",
    "cos",
    "cumsum",
    "device_assert",
    "device_print",
    "div",
    "dot",
    "empty",
    "erf",
    "exp",
    "exp2",
    "expand_dims",
    "float8e4nv",
    "float8e5",
    "float16",
    "float32",
    "float64",
    "floor",
    "fma",
    "full",
    "fused",
    "fused_async",
    "gather",
    "gather_async",
    "gelu",
    "gemm_tile",
    "int1",
    "int8",
    "int32",
    "int64",
    "load",
    "load_async",
    "log",
    "log2",
    "max",
    "maximum",
    "min",
    "minimum",
    "mul",
    "num_programs",
    "pow",
    "program_id",
    "recv",
    "recv_async",
    "ref",
    "release",
    "relu",
    "reshape",
    "round",
    "rsqrt",
    "scratch",
    "send",
    "send_async",
    "sigmoid",
    "silu",
    "sin",
    "softmax",
    "sqrt",
    "store",
    "store_async",
    "sub",
    "sum",
    "tanh",
    "trans",
    "uint8",
    "wait",
    "where",
    "zeros",
]


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


@overload
def wait(pending: PendingValue) -> Value: ...
@overload
def wait(pending: PendingValues) -> tuple[Value, ...]: ...
@overload
def wait(pending: PendingResult) -> Value | None: ...
def wait(pending: PendingResult | PendingValues) -> Value | tuple[Value, ...] | None:
    """Wait for a result of a function that starts an operation, such as `load_async`: its value or
    values, or None if the result is in memory.
    """
    if not callable(getattr(pending, "wait", None)):
        given = f"{type(pending).__name__} {pending!r}"
        raise TypeError(
            "tl.wait takes a result of tl.load_async, tl.store_async, tl.fused_async, "
            f"tl.composite or tl.recv_async, not {given}"
        )
    return pending.wait()


def empty(shape: tuple[int, ...] | int, dtype: DType) -> Value:
    """Scratch for a value of `shape`, as the target of `out=` and `dst_addr=`: it takes no time,
    and its elements are not defined.
    """
    return running_kernel().empty(checked_shape(shape), checked_dtype(dtype, "tl.empty"))


@contextmanager
def scratch() -> Generator[None]:
    """`with tl.scratch():` frees, at the end of the block, the TCM of values made inside; using
    them after it is a `KernelError`.

    The end of the block waits for the operations in flight that use these values.
    """
    with running_kernel().scratch(), inner_scope():
        yield


if not TYPE_CHECKING:
    # With this function in sight, a type checker would accept every attribute.
    def __getattr__(name: str) -> NoReturn:
        raise AttributeError(absent_name(name, __all__))
