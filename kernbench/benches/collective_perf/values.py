"""The data of a check: random inputs of every rank, and the results that numpy expects of them.

Both are generated in blocks. A rank needs the inputs of all ranks for its expected result, and
would otherwise hold them all in memory. The last few blocks are kept: a rank needs its own input
twice, and the ranks of one process expect the same result.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kernbench.benches.collective_perf.collective import PerfCase
from runtime.core.dtypes import DType
from runtime.language.value import Array

BLOCK = 1 << 18
"""Elements of a block."""
KEPT_BLOCKS = 4
"""The blocks of inputs that are kept, and those of combined inputs."""


class InputRow(NamedTuple):
    """Row `row` of the input of `rank`, or of all ranks combined where `rank` is None."""

    rank: int | None
    row: int


def origin_of(case: PerfCase, rank: int, row: int) -> InputRow:
    """The input from which row `row` of the result of `rank` is made."""
    return {
        "all_reduce": InputRow(None, 0),
        "reduce": InputRow(None if rank == case.root else rank, 0),
        "broadcast": InputRow(case.root, 0),
        "reduce_scatter": InputRow(None, rank),
        "all_gather": InputRow(row, 0),
        "alltoall": InputRow(row, rank),
        "sendrecv": InputRow((rank - 1) % case.ranks, 0),
    }[case.collective.name]


def inputs(case: PerfCase, repetition: int, rank: int) -> Array:
    """The input of `rank`, of shape (rows, count)."""
    rows = [
        np.concatenate([_block(case, repetition, rank, row, *block) for block in _blocks(case)])
        for row in range(case.input_rows)
    ]
    return np.stack(rows)


def wrong_elements(case: PerfCase, repetition: int, rank: int, result: Array) -> int:
    """The number of wrong elements of the result of `rank`.

    Moved elements, integers, maxima and minima must be equal bit by bit; `combined` has the
    tolerance of the others.
    """
    wrong = 0
    for row in range(case.output_rows):
        origin = origin_of(case, rank, row)
        for start, stop in _blocks(case):
            got = result[row, start:stop]
            if origin.rank is None:
                wrong += _differ(got, *_combined_block(case, repetition, origin.row, start, stop))
            else:
                wrong += int(
                    np.count_nonzero(
                        got != _block(case, repetition, origin.rank, origin.row, start, stop)
                    )
                )
    return wrong


def combined(op: str, dtype: DType, given: Array) -> tuple[Array, Array | float]:
    """The contributions `given` (axis 0) combined, and the largest error of a correct result.

    Integers wrap round. A floating-point result that is rounded to nearest after each of its k
    operations, in any order, has an error of at most (1 + u)^k - 1 times the result of the same
    operations on the magnitudes, where u is half the epsilon of the type: every contribution is
    multiplied by at most k factors 1 + d with |d| <= u (N. Higham, Accuracy and Stability of
    Numerical Algorithms, sections 2.2 and 4.2). k is n - 1 for n contributions, and n for an
    average, which also divides. Products and quotients below the normal range have an error
    of one subnormal step each. What is expected is the result of the same operations in float64, in
    numpy's order, so its error is added: it counts where the type is float64 itself.
    """
    if not dtype.is_floating_point:
        operation = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[op]
        return operation.reduce(given, axis=0, dtype=dtype.numpy), 0.0
    exact, contributions, limits = given.astype(np.float64), len(given), dtype.limits
    unit, step = float(limits.eps) / 2, float(limits.smallest_subnormal)
    bound = _bound(contributions - 1, unit)
    match op:
        case "max":
            return exact.max(axis=0), 0.0
        case "min":
            return exact.min(axis=0), 0.0
        case "prod":
            product = exact.prod(axis=0)
            return product, bound * np.abs(product) + (contributions - 1) * step
        case "avg" if contributions > 1:
            bound = _bound(contributions, unit)
            return exact.mean(axis=0), bound * np.abs(exact).mean(axis=0) + step
        case _:
            return exact.sum(axis=0), bound * np.abs(exact).sum(axis=0)


def _bound(operations: int, unit: float) -> float:
    """The largest relative error of a result and of its reference in float64, together."""
    units = (unit, float(np.finfo(np.float64).eps) / 2)
    return sum(math.expm1(operations * math.log1p(each)) for each in units)


def _differ(got: Array, right: Array, tolerance: Array | float) -> int:
    if right.dtype.kind != "f":
        return int(np.count_nonzero(got != right))
    # Comparisons with NaN are false, so that a NaN counts as wrong.
    near = np.abs(got.astype(np.float64) - right) <= tolerance
    return int(near.size - np.count_nonzero(near))


def _blocks(case: PerfCase) -> Iterator[tuple[int, int]]:
    for start in range(0, case.count, BLOCK):
        yield start, min(start + BLOCK, case.count)


@lru_cache(KEPT_BLOCKS)
def _combined_block(
    case: PerfCase, repetition: int, row: int, start: int, stop: int
) -> tuple[Array, Array | float]:
    """`combined` of elements `start` to `stop` of a row of the inputs of all ranks."""
    given = [_block(case, repetition, each, row, start, stop) for each in range(case.ranks)]
    return combined(case.op, case.dtype, np.stack(given))


@lru_cache(KEPT_BLOCKS)
def _block(case: PerfCase, repetition: int, rank: int, row: int, start: int, stop: int) -> Array:
    """Random elements `start` to `stop` of a row of the input of `rank`.

    They depend on the arguments alone. Factors of a product are near 1 or -1, so that the product
    over many ranks neither overflows nor underflows.
    """
    draw = np.random.default_rng([repetition, rank, row, start])
    kind, count = case.dtype.numpy, stop - start
    if not case.dtype.is_floating_point:
        limits = np.iinfo(kind.name)
        return draw.integers(limits.min, limits.max, count, kind.name, endpoint=True)
    signs, values = draw.choice((-1.0, 1.0), count), draw.uniform(-1, 1, count)
    # In place: a block of temporary numbers takes longer to allocate than to compute.
    values *= 1 / case.ranks if case.op == "prod" else 1.0
    values += 1
    values *= signs
    return values.astype(kind)
