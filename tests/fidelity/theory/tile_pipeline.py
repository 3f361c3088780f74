"""The pipeline of a matrix product whose operands are in TCM, as a recursion over its steps.

Fetch port, engine, vector engine (epilogue) and store port serve the steps in order. Two finite
pools couple them: a step is fetched to one of R register sets, which is free when the engine has
finished the step; an output tile is summed in one of A accumulators, which is free when the tile is
stored. With i a step and o an output tile, times in ps:

    fetch(i)  = max(fetched(i - 1), ended(i - R))          and, if the sum has an initial value,
                                                           stored(o - A) for the first step of o
    begins(i) = max(fetched(i), ended(i - 1), stored(o - A) for the first step of o)
    stores(o) = max(ended(last step of o) + epilogue, stored(o - 1))

This is a (max, +) linear system with finite buffers: F. Baccelli, G. Cohen, G. J. Olsder, J.-P.
Quadrat, Synchronization and Linearity, 1992.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil

from kernbench.oracle.theory.engines.gemm import GemmNumbers, GemmShape
from kernbench.oracle.theory.servers import transfer_ps

REGISTER_SETS = ACCUMULATORS = 2
"""Sets of a PE, as docs/internals/rules.md describes them; no key of the topology file has them."""
SUM_BYTES = 4
"""Bytes of an element of an accumulator: float32 or int32."""


@dataclass(frozen=True)
class StagedGemm:
    """A product of operands in TCM, with the result in TCM.

    `step_ps(size, last)` is the time of a step of the engine, `last` for the last one of an output
    tile; `epilogue_ps(elements)` that of bias and activation of an output tile, 0 without.
    """

    shape: GemmShape
    itemsize: int
    result_itemsize: int
    step_ps: Callable[[GemmShape, bool], int]
    epilogue_ps: Callable[[int], int]
    has_start: bool = False
    has_bias: bool = False


@dataclass(frozen=True)
class PipelineTimes:
    """The time from the begin of the first fetch to the end of the last store, and the idle time of
    the engine in it: with operands that were not fetched, and without an accumulator.
    """

    span_ps: int
    fetch_stall_ps: int
    store_stall_ps: int


def staged_times(numbers: GemmNumbers, gemm: StagedGemm) -> PipelineTimes:
    """The recursion of this module."""
    # The times of all steps and output tiles so far; none of them is later than the next one.
    fetched, ended, stored = list[int](), list[int](), list[int]()
    epilogue_end = fetch_stall = store_stall = 0
    for rows, columns in product(
        _spans(gemm.shape.m, numbers.tile.m), _spans(gemm.shape.n, numbers.tile.n)
    ):
        depths = _spans(gemm.shape.k, numbers.tile.k)
        accumulator = _earlier(stored, ACCUMULATORS)
        for index, depth in enumerate(depths):
            first, last = index == 0, index == len(depths) - 1
            turn = max(_earlier(fetched, 1), _earlier(ended, REGISTER_SETS))
            fetch = max(turn, accumulator) if first and gemm.has_start else turn
            fetched.append(
                fetch
                + _fetch_ps(numbers, gemm, GemmShape(rows, depth, columns), first=first, last=last)
            )
            idle = _earlier(ended, 1)
            begin = max(fetched[-1], idle, accumulator if first else 0)
            # Waits for an accumulator happen before the engine and, with an initial value, before
            # the fetch; the latest waits count first.
            by_store = min(begin - idle, begin - fetched[-1] + fetch - turn)
            store_stall += by_store
            fetch_stall += begin - idle - by_store
            ended.append(begin + gemm.step_ps(GemmShape(rows, depth, columns), last))
        epilogue_end = max(ended[-1], epilogue_end) + gemm.epilogue_ps(rows * columns)
        stored_ps = transfer_ps(rows * columns * gemm.result_itemsize, numbers.fetch_gbs)
        stored.append(max(epilogue_end, _earlier(stored, 1)) + stored_ps)
    return PipelineTimes(stored[-1], fetch_stall, store_stall)


def _fetch_ps(
    numbers: GemmNumbers, gemm: StagedGemm, size: GemmShape, *, first: bool, last: bool
) -> int:
    """Both tiles, the initial value with the first step, a row of bias with the last step."""
    moved = [size.m * size.k * gemm.itemsize, size.k * size.n * gemm.itemsize]
    if first and gemm.has_start:
        moved.append(size.m * size.n * SUM_BYTES)
    if last and gemm.has_bias:
        moved.append(size.n * SUM_BYTES)
    return sum(transfer_ps(nbytes, numbers.fetch_gbs) for nbytes in moved)


def _spans(length: int, tile: int) -> list[int]:
    """Sides of the tiles along one axis."""
    return [min(tile, length - index * tile) for index in range(ceil(length / tile))]


def _earlier(times: Sequence[int], count: int) -> int:
    """The time `count` entries ago, 0 if there is none."""
    return times[-count] if len(times) >= count else 0
