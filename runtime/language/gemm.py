"""A matrix product for the PE's scheduler: operands, epilogue, checks, and its arithmetic tile by
tile.

The products of one tile are summed in float64, which models an adder tree wide enough for all of
them, and rounded to float32 once, when the sum is added to the accumulator. So the result depends
on the tile and its depth only, and not on the order in which a library adds.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from runtime.core.dtypes import (
    DType,
    bfloat16,
    float8e4nv,
    float8e5,
    float16,
    float32,
    int8,
    int32,
)
from runtime.core.errors import nearest
from runtime.language.functions import ACTIVATIONS
from runtime.language.operations import compute, rounded
from runtime.language.shapes import check_apart
from runtime.language.value import Array, Ref, Shape, Value, check_exists
from runtime.model.tiles import TilePlan, TileSize

_OPERANDS = (float16, bfloat16, float32, float8e4nv, float8e5, int8)
_RESULTS = (*_OPERANDS, int32)
_KNOWN = "the engine has f16, bf16, f32, f8e4m3, f8e5m2, i8 and i32: convert with x.to(dtype)"


@dataclass(frozen=True)
class Gemm:
    """`out = activation(acc + a @ b + bias)`, as `checked_gemm` returns it.

    A `Value` operand is staged in TCM, a `Ref` is streamed from memory. With `out` None the result
    is a value in TCM: a new one, or `over`, which is written over. A blocked `Ref` is stored in
    tiles of the engine: (m, k) for `a`, (k, n) for `b`, (m, n) for `out`.
    """

    a: Value | Ref
    b: Value | Ref
    out: Ref | None
    dtype: DType
    acc: Value | None = None
    bias: Value | None = None
    activation: str | None = None
    over: Value | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the result."""
        return self.a.shape[0], self.b.shape[1]

    @property
    def accumulator(self) -> DType:
        """The type in which the engine sums: float32, or int32 for i8."""
        return accumulator_type(self.a.dtype)

    def plan(self, tile: TileSize) -> TilePlan:
        """The tiles of this product."""
        return TilePlan(self.a.shape[0], self.a.shape[1], self.b.shape[1], tile)


def accumulator_type(dtype: DType) -> DType:
    """The type in which products of `dtype` are summed."""
    return float32 if dtype.is_floating_point else int32


def checked_gemm(
    a: Value | Ref,
    b: Value | Ref,
    out: Ref | Value | None = None,
    *,
    acc: Value | None = None,
    bias: Value | None = None,
    activation: str | None = None,
    out_dtype: DType | None = None,
) -> Gemm:
    """The product of `a` (m, k) and `b` (k, n); `TypeError` or `ValueError` with the rule if the
    engine does not support it.

    The type of the result is `out_dtype`, else that of `out`, else that of the accumulator.
    """
    shape = _checked_operands(a, b)
    for operand in (a, b, acc, bias):
        if isinstance(operand, Value):
            check_exists(operand, "gemm")
    accumulator = accumulator_type(a.dtype)
    _check_out(out, shape, out_dtype)
    _check_acc(acc, shape, accumulator)
    _check_bias(bias, shape, accumulator)
    _check_activation(activation, accumulator)
    dtype = _result_type(out, out_dtype, accumulator)
    streamed, over = (out, None) if isinstance(out, Ref) else (None, out)
    if over is not None:
        _check_over(over, acc, (a, b, bias))
    return Gemm(
        a=a,
        b=b,
        out=streamed,
        dtype=dtype,
        acc=acc,
        bias=bias,
        activation=activation,
        over=over,
    )


def accumulate(acc: Array | None, a: Array, b: Array) -> Array:
    """One step of the engine: `acc + a @ b` of one tile, in float32 (int32 for i8 operands); `acc`
    None stands for zeros.
    """
    with np.errstate(all="ignore"):
        product = np.matmul(a.astype(np.float64), b.astype(np.float64))
        # Integers need exact arithmetic modulo 2^32, which float32 does not give.
        if a.dtype == int8.numpy:
            # The 53-bit mantissa holds every sum of i8 products that fits a PE, so only the
            # accumulator wraps.
            whole = product.astype(np.int64)
            return (whole if acc is None else acc + whole).astype(np.int32)
        if acc is not None:
            np.add(product, acc, out=product)
        return product.astype(np.float32)


def finish(acc: Array, bias: Array | None, activation: str | None, dtype: DType) -> Array:
    """The epilogue of a tile in the accumulator's type: add `bias`, apply the activation, round
    once to `dtype`.
    """
    # Bias and activation use the accumulator's precision; only the result is rounded to `dtype`.
    inner = float32 if acc.dtype == float32.numpy else int32
    with np.errstate(all="ignore"):
        if bias is not None:
            acc = compute("add", (acc, bias.astype(inner.numpy)), inner)
        if activation is not None:
            acc = compute(activation, (acc,), inner)
        return rounded(acc, dtype) if dtype.is_floating_point else acc.astype(dtype.numpy)


def evaluate(gemm: Gemm, a: Array, b: Array, tile: TileSize) -> Array:
    """The product of whole operands, computed tile by tile as the engine computes it."""
    result = np.empty(gemm.shape, gemm.dtype.numpy)
    start = None if gemm.acc is None else gemm.acc.data
    bias = None if gemm.bias is None or gemm.bias.data is None else gemm.bias.data.reshape(-1)
    acc: Array | None = None
    for each in gemm.plan(tile):
        rows, depth, columns = slice(*each.rows), slice(*each.depth), slice(*each.columns)
        if each.first:
            # The accumulator of a tile is loaded once, before its first step in depth.
            acc = None if start is None else start[rows, columns]
        # Each step rounds once: the depth of the tile is part of the numerical result.
        acc = accumulate(acc, a[rows, depth], b[depth, columns])
        if each.last:
            result[rows, columns] = finish(
                acc, None if bias is None else bias[columns], gemm.activation, gemm.dtype
            )
    return result


def _checked_operands(a: object, b: object) -> tuple[int, int]:
    for name, operand in (("a", a), ("b", b)):
        if not isinstance(operand, Value | Ref):
            given = f"{type(operand).__name__} {operand!r}"
            expected = "a value in TCM (tl.load) or a matrix in memory (tl.ref)"
            raise TypeError(f"gemm: {name} is {expected}, not {given}")
        if len(operand.shape) != 2 or 0 in operand.shape:
            raise ValueError(
                f"gemm: {name} has shape {operand.shape}; it must be a matrix with at least one "
                "element"
            )
    assert isinstance(a, Value | Ref)
    assert isinstance(b, Value | Ref)
    if a.shape[1] != b.shape[0]:
        raise ValueError(
            f"gemm: a {a.shape} and b {b.shape} do not match: the columns of a must be the rows "
            "of b"
        )
    if a.dtype != b.dtype:
        raise TypeError(
            f"gemm: a is {a.dtype.name} and b is {b.dtype.name}; they must be equal: "
            "convert with x.to(dtype)"
        )
    if a.dtype not in _OPERANDS:
        raise TypeError(
            f"gemm: operands are {a.dtype.name}; the engine multiplies f16, bf16, f32, f8e4m3, "
            "f8e5m2 and i8 only"
        )
    return a.shape[0], b.shape[1]


def _check_out(out: object, shape: Shape, out_dtype: object) -> None:
    if out_dtype is not None and not isinstance(out_dtype, DType):
        raise TypeError(f"gemm: out_dtype {out_dtype!r} is not an element type such as tl.float16")
    if out is None:
        return
    if not isinstance(out, Ref | Value):
        raise TypeError(
            "gemm: out is a matrix in memory (tl.ref), a value in TCM or None, not "
            f"{type(out).__name__} {out!r}"
        )
    if out.shape != shape:
        raise ValueError(f"gemm: out has shape {out.shape}; the product has {shape}")
    if out_dtype is not None and out_dtype != out.dtype:
        raise TypeError(
            f"gemm: out is {out.dtype.name} and out_dtype {out_dtype.name}; with out, omit "
            "out_dtype"
        )


def _check_acc(acc: object, shape: Shape, accumulator: DType) -> None:
    if acc is None:
        return
    if not isinstance(acc, Value):
        raise TypeError(f"gemm: acc is a value in TCM or None, not {type(acc).__name__} {acc!r}")
    if acc.shape != shape:
        raise ValueError(f"gemm: acc has shape {acc.shape}; the product has {shape}")
    if acc.dtype != accumulator:
        raise TypeError(
            f"gemm: acc is {acc.dtype.name}; these operands are summed in {accumulator.name}"
        )


def _check_bias(bias: object, shape: Shape, accumulator: DType) -> None:
    if bias is None:
        return
    if not isinstance(bias, Value):
        raise TypeError(f"gemm: bias is a value in TCM or None, not {type(bias).__name__} {bias!r}")
    if bias.shape not in ((shape[1],), (1, shape[1])):
        raise ValueError(
            f"gemm: bias has shape {bias.shape}; a product of shape {shape} takes {(shape[1],)} or "
            f"{(1, shape[1])}"
        )
    if bias.dtype not in _RESULTS:
        raise TypeError(f"gemm: bias is {bias.dtype.name}; {_KNOWN}")
    if bias.dtype.is_floating_point and not accumulator.is_floating_point:
        raise TypeError(
            f"gemm: bias is {bias.dtype.name}; a sum in {accumulator.name} takes a bias of i8 or "
            "i32"
        )


def _check_activation(activation: str | None, accumulator: DType) -> None:
    if activation is None:
        return
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"gemm: activation {activation!r} is not known{nearest(str(activation), ACTIVATIONS)}"
        )
    if activation != "relu" and not accumulator.is_floating_point:
        raise TypeError(
            f"gemm: activation {activation} is not defined for a sum in {accumulator.name}; relu is"
        )


def _check_over(out: Value, acc: Value | None, operands: Iterable[Value | Ref | None]) -> None:
    check_exists(out, "gemm")
    # The engine reads a tile of an operand again, after it has stored tiles of the result.
    check_apart(out, operands, "gemm")
    if acc is not None and out.shares_bytes(acc) and out.operand != acc.operand:
        raise ValueError(
            f"gemm: out shares bytes with acc, {acc!r}: it must be acc, or apart from it"
        )


def _result_type(out: Ref | Value | None, out_dtype: DType | None, accumulator: DType) -> DType:
    dtype = out_dtype or (accumulator if out is None else out.dtype)
    if dtype not in _RESULTS:
        raise TypeError(f"gemm: a result of {dtype.name}; {_KNOWN}")
    if dtype.is_floating_point != accumulator.is_floating_point:
        kind = "floating-point" if accumulator.is_floating_point else "integer"
        raise TypeError(
            f"gemm: a result of {dtype.name} from a sum in {accumulator.name}: it must be a {kind} "
            "type too"
        )
    return dtype
