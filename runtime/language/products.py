"""The functions of `tl` that run matrix products on the GEMM engine."""

from typing import Literal

from runtime.core.dtypes import DType
from runtime.core.errors import nearest
from runtime.language.context import PendingResult, running_kernel
from runtime.language.gemm import checked_gemm
from runtime.language.value import Ref, Value


def dot(
    a: Value | Ref,
    b: Value | Ref,
    acc: Value | None = None,
    out_dtype: DType | None = None,
    *,
    out: Value | None = None,
) -> Value:
    """The matrix product `acc + a @ b` as a value in TCM: `composite` and `wait` in one.

    `a` (m, k) and `b` (k, n) have one type of f16, bf16, f32, f8e4m3,
    f8e5m2 and i8. Products are summed in float32
    (int32 for i8), the type of `acc` and by default of the result, rounded once to `out_dtype`. The
    result is written over the value `out` if there is one, which may be `acc`.
    """
    if isinstance(out, Ref):
        raise TypeError(f"tl.dot: out is a value in TCM, not {out!r}; tl.composite takes a tl.ref")
    result = running_kernel().gemm(checked_gemm(a, b, out, acc=acc, out_dtype=out_dtype)).wait()
    assert result is not None
    return result


def composite(
    kind: Literal["gemm"],
    a: Value | Ref,
    b: Value | Ref,
    out: Ref | Value | None = None,
    *,
    acc: Value | None = None,
    bias: Value | None = None,
    activation: str | None = None,
    out_dtype: DType | None = None,
) -> PendingResult:
    """Queue `activation(acc + a @ b + bias)` at the PE's scheduler; `wait` for the result.

    The scheduler cuts the product into tiles and pipelines them through DMA and engines; several
    composites may be in flight. Operands are staged (`Value`) or streamed (`ref`); the result is
    streamed to `out`, or stays in TCM as a value: a new one, or over the value `out`, which may be
    `acc`. Commands that write over its values wait for the product. A command that conflicts with
    its matrices in memory before the kernel has waited for it is a `KernelError`.

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
