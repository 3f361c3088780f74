"""Random contributions to a reduction, and its right result by numpy."""

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from kernbench.benches.collective_perf.values import combined
from runtime.ccl.reduction import ReduceOp
from runtime.core.dtypes import ALL, DType, boolean

Kind = tuple[DType, ReduceOp]

ALGORITHMS = (
    "ring",
    "halving_doubling",
    "mesh",
    "recursive_doubling",
    "tree",
    "ring_naive",
    "intercube",
    "hierarchical",
    "torus",
)
"""An order in which algorithms that pair ranks average over 3 and 9 ranks: not a power of two."""

KINDS: list[Kind] = [(dtype, op) for dtype in ALL for op in ReduceOp if op.is_defined_for(dtype)]
"""Every element type with every operation that it has."""


BITWISE = {
    ReduceOp.BAND: np.bitwise_and,
    ReduceOp.BOR: np.bitwise_or,
    ReduceOp.BXOR: np.bitwise_xor,
}
LOGICAL = {
    ReduceOp.SUM: np.logical_or,
    ReduceOp.MAX: np.logical_or,
    ReduceOp.PRODUCT: np.logical_and,
    ReduceOp.MIN: np.logical_and,
}
NUMPY: dict[ReduceOp, Callable[..., np.ndarray]] = {
    ReduceOp.SUM: np.add,
    ReduceOp.AVG: np.add,
    ReduceOp.MAX: np.maximum,
    ReduceOp.MIN: np.minimum,
    ReduceOp.PRODUCT: np.multiply,
    **BITWISE,
}


def reduced(op: ReduceOp, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The reduction of the contributions in float64, of integers and bools in int64.

    An average is rounded once, as a quotient.
    """
    dtype = arrays[0].dtype
    wide = np.int64 if dtype.kind in "iub" else np.float64
    total = reduce(NUMPY[op], [array.astype(wide) for array in arrays])
    if wide is np.int64:
        # Integers wrap round; a bool is whether the number is not 0.
        return total.astype(dtype)
    whole = total / len(arrays) if op is ReduceOp.AVG else total
    return (whole if dtype == np.float64 else whole.astype(np.float32)).astype(dtype)


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
    if dtype is boolean:
        return [draw.integers(0, 2, shape).astype(np.bool_) for _ in range(contributions)]
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
    first, bitwise = results[0], BITWISE.get(op)
    if bitwise is not None:
        right, tolerance = bitwise.reduce(np.stack(given), axis=0), 0.0
    elif dtype is boolean:
        # As in PyTorch: the sum of bools is whether one is true, the product whether all are.
        right, tolerance = LOGICAL[op].reduce(np.stack(given), axis=0), 0.0
    else:
        name = {ReduceOp.PRODUCT: "prod"}.get(op, op.value)
        right, tolerance = combined(name, dtype, np.stack(given))
    exact = not dtype.is_floating_point
    off = np.abs(first.astype(np.float64) - right.astype(np.float64))
    assert (off <= (0.0 if exact else tolerance)).all()
    assert {result.tobytes() for result in results} == {first.tobytes()}
