"""Random contributions to a reduction, and its right result."""

from collections.abc import Sequence

import numpy as np

from kernbench.benches.collective_perf.values import combined
from runtime.ccl.reduction import ReduceOp
from runtime.core.dtypes import ALL, DType

Kind = tuple[DType, ReduceOp]

KINDS: list[Kind] = [
    (dtype, op)
    for dtype in ALL
    for op in ReduceOp
    if dtype.is_floating_point or op is not ReduceOp.AVG
]
"""Every element type with every operation that it has."""


def drawn(
    kind: Kind, shape: int | tuple[int, ...], contributions: int, seed: int = 0
) -> list[np.ndarray]:
    """Random contributions: any integers, or numbers whose products neither overflow nor vanish."""
    dtype, draw = kind[0], np.random.default_rng(seed)
    if dtype.is_floating_point:
        return [
            (draw.choice((-1.0, 1.0), shape) * draw.uniform(0.7, 1.4, shape)).astype(dtype.numpy)
            for _ in range(contributions)
        ]
    least, most = np.iinfo(dtype.numpy.name).min, np.iinfo(dtype.numpy.name).max
    return [
        draw.integers(least, most, shape, dtype.numpy.name, endpoint=True)
        for _ in range(contributions)
    ]


def assert_combined(kind: Kind, given: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
    """Every result is the reduction of `given` by numpy, and all have the same bits.

    Integers are equal bit by bit, other numbers within the error bound that `perf` checks.
    """
    dtype, op = kind
    name = {ReduceOp.PRODUCT: "prod"}.get(op, op.value)
    right, tolerance = combined(name, dtype, np.stack(given))
    first = results[0]
    exact = right.dtype == dtype.numpy
    off = np.abs(first.astype(np.float64) - right.astype(np.float64))
    assert (off <= (0.0 if exact else tolerance)).all()
    assert {result.tobytes() for result in results} == {first.tobytes()}
