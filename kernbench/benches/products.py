"""Matrix products in benches: operands, expected results, and the roofline of a measured time.

A result is checked element by element against numpy in float64; the tolerance follows from the
roundings of the GEMM engine (see `wrong_elements`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from kernbench import Column, PeRoofline, TableRow, tl, torch
from kernbench.oracle.theory.engines.gemm import GemmShape, streamed_bytes
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
from runtime.core.rng import seeded
from runtime.language.value import Array
from runtime.model.blocked_layout import BlockedLayout

DTYPES: Mapping[str, DType] = {
    dtype.torch_name: dtype for dtype in (float16, bfloat16, float32, float8e4nv, float8e5, int8)
}
"""The element types that the GEMM engine multiplies."""
LAYOUTS = ("blocked", "row_major")
"""Streamed matrices in memory: tile after tile of the GEMM engine, or row after row."""
METRICS = (
    Column("rate", "TFLOPS"),
    Column("of peak", "%"),
    Column("limit", "ns"),
    Column("bound by"),
)
"""Columns that follow from a time. The limit is the roofline: operations at the peak rate, or bytes
at the memory bandwidth, whichever takes longer."""
ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
}
"""The epilogues, in float64."""

_STEEPEST = 1.13
"""The largest derivative of an activation: that of gelu, near x = 1.4."""
_FEW = 1 << 20
"""The most factors for which single elements are computed: 16 MB, and less time than a product."""


@dataclass(frozen=True)
class BenchProduct:
    """activation(a @ b + bias) on a PE, `a` of shape (m, k) and `b` (k, n).

    `loads`: which of the two a kernel loads to TCM as a whole; the others are streamed. `blocked`:
    whether streamed matrices are in memory tile after tile.
    """

    m: int
    k: int
    n: int
    dtype: DType
    loads: tuple[bool, bool] = (False, False)
    blocked: bool = True
    activation: str = "none"

    @property
    def result(self) -> DType:
        """The type of the result: that of the operands, int32 for int8."""
        return self.dtype if self.dtype.is_floating_point else int32

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.m * self.k * self.n

    @property
    def nbytes(self) -> int:
        """Bytes read from and written to memory.

        The engine reads a streamed operand once for each row or column of tiles of the other one.
        """
        tile = GemmShape(*torch.ahbm.get_device_properties().gemm_tile)
        whole = self.m * self.k * self.dtype.itemsize, self.k * self.n * self.dtype.itemsize
        streamed = streamed_bytes(GemmShape(self.m, self.k, self.n), tile, self.dtype.itemsize)
        read = (
            loaded if once else again
            for once, loaded, again in zip(self.loads, whole, streamed, strict=True)
        )
        return sum(read) + self.m * self.n * self.result.itemsize

    def row(
        self, labels: tuple[str | int, ...], time_ps: int, *, count: int = 1, pes: int = 1
    ) -> TableRow:
        """The row for `count` such products on each of `pes` PEs in `time_ps`; see `METRICS`."""
        properties = torch.ahbm.get_device_properties()
        peak_tflops = properties.peak_gemm_tflops_per_pe
        macs, nbytes = count * self.operations // 2, count * self.nbytes
        roofline = PeRoofline.of(properties, macs=macs, hbm_bytes=nbytes)
        # 1 TFLOPS is one operation a picosecond.
        tflops = pes * count * self.operations / time_ps
        metrics = (
            tflops,
            100 * tflops / (pes * peak_tflops),
            roofline.bound_ns,
            "compute" if roofline.gemm_ns >= roofline.hbm_ns else "memory",
        )
        return TableRow(labels, time_ps, metrics)

    def layouts(self) -> tuple[BlockedLayout | None, BlockedLayout | None, BlockedLayout | None]:
        """The layouts of `a`, `b` and the result in memory; a loaded operand is row-major."""
        m, k, n = torch.ahbm.get_device_properties().gemm_tile
        a = torch.blocked_row_major(m, k) if self.blocked and not self.loads[0] else None
        b = torch.blocked_row_major(k, n) if self.blocked and not self.loads[1] else None
        return a, b, torch.blocked_row_major(m, n) if self.blocked else None


def random_elements(shape: tuple[int, ...], dtype: DType, *seed: int) -> Array:
    """Elements that depend on `seed` alone: from [-1, 1), or any values of an integer type."""
    if not dtype.is_floating_point:
        return np.frombuffer(
            seeded(*seed).randbytes(prod(shape) * dtype.itemsize), dtype.numpy
        ).reshape(shape)
    integers = np.frombuffer(seeded(*seed).randbytes(prod(shape) * 4), np.uint32).reshape(shape)
    return (integers / 2**31 - 1).astype(dtype.numpy)


def wrong_elements(
    product: BenchProduct, a: Array, b: Array, result: Array, bias: Array | None = None
) -> int:
    """The number of elements of `result` whose error is larger than rounding explains.

    The reference is activation(a @ b + bias) in float64. The engine rounds the sum to float32 after
    each tile along k, adds the bias, applies the activation, and rounds to the type of the result.
    Integers must be exact.
    """
    left, right = a.astype(np.float64), b.astype(np.float64)
    exact = left @ right
    if bias is not None:
        exact += bias.astype(np.float64)
    expected = ACTIVATIONS[product.activation](exact)
    if not product.dtype.is_floating_point:
        return int(np.count_nonzero(result != expected))
    if product.result.saturates:
        expected = np.clip(expected, -product.result.greatest, product.result.greatest)
    errors = np.abs(result.astype(np.float64) - expected)
    rounded = _eps(product.result) * np.abs(expected) + _least(product.result)
    # Not `errors > ...`: a result that is not a number must count as wrong.
    doubtful = ~(errors <= rounded)
    # The sums of the magnitudes cost as much as the product, and few elements need them.
    size = _magnitudes(left, right, doubtful)
    if bias is not None:
        size += np.broadcast_to(np.abs(bias.astype(np.float64)), exact.shape)[doubtful]
    # One rounding a tile along k, one for the bias and one for the activation's argument.
    roundings = tl.cdiv(product.k, torch.ahbm.get_device_properties().gemm_tile.k) + 2
    single = _eps(float32)
    summed = _STEEPEST * roundings * single * size
    applied = 0 if product.activation == "none" else 4 * single * (1 + size)
    return int(np.count_nonzero(~(errors[doubtful] <= summed + applied + rounded[doubtful])))


def _magnitudes(a: Array, b: Array, chosen: Array) -> Array:
    """The chosen elements of |a| @ |b|, in row-major order."""
    rows, columns = np.nonzero(chosen)
    if len(rows) * a.shape[1] > _FEW:
        return (np.abs(a) @ np.abs(b))[chosen]
    return np.einsum("ik,ik->i", np.abs(a[rows]), np.abs(b.T[columns]))


def _eps(dtype: DType) -> float:
    return float(dtype.limits.eps)


def _least(dtype: DType) -> float:
    return float(dtype.limits.smallest_subnormal)
