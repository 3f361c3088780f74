"""One launch for the products of a batch of matrices, whose operands may have any pitch and order.

The results are cut into blocks of whole tiles, all matrices alike, and the blocks are dealt to the
PEs in the order of memory. The number of blocks of a matrix is that with the least estimated time:
the largest number of blocks of a PE times the time of a block (`product_plan.grid_cost`).
"""

from functools import lru_cache
from typing import NamedTuple

import torch

from kernbench.torch_backend.kernels.products import (
    BatchOperand,
    BatchTask,
    first_matrix,
    multiply_batch,
)
from kernbench.torch_backend.launching.launches import launched, pointer_of, window_of
from kernbench.torch_backend.launching.partition import Pe
from kernbench.torch_backend.runtime.storages import StridedWindow
from runtime.core.requests import PerPe
from runtime.device.kernels.products import ProductTask, ResultMatrix
from runtime.device.products.product_blocks import pe_memory, pe_rates
from runtime.device.products.product_operands import ProductOperand
from runtime.device.products.product_plan import (
    PeRates,
    ProductDepth,
    ProductSize,
    divided,
    grid,
    grid_cost,
    scratch_plan,
)
from runtime.model.placement import Span
from runtime.torch.ahbm import get_device_properties


class BatchGrid(NamedTuple):
    """The blocks of each result, rows times columns, and the estimated time of the launch."""

    rows: int
    columns: int
    time_ns: float


class _MatrixOperand(NamedTuple):
    window: StridedWindow
    batch: BatchOperand


def launch_products(
    a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor
) -> None:
    """Write `a @ b + bias` to `out`: tensors (batch, m, k), (batch, k, n), (n,), (batch, m, n), all
    with elements. `out` is row-major in each matrix; it may have a wider type than the operands.
    """
    left, right = _operand(a, used_in_rows=True), _operand(b, used_in_rows=False)
    target = window_of(out)
    used, row = [target, left.window, right.window], None
    if bias is not None:
        window = window_of(bias.contiguous())
        used.append(window)
        row = first_matrix(
            pointer_of(window), (1, out.shape[2]), 1, is_turned=False, used_in_rows=False
        )
    blocks = _dealt_blocks(a, b)
    tasks, sums = _tasks(blocks, a, (left.batch, right.batch), target)
    if sums is not None:
        used.append(window_of(sums))
    arguments = (PerPe(tasks), left.batch, right.batch, row)
    launched("matmul", multiply_batch, arguments, used, list(tasks))


@lru_cache(maxsize=1024)
def batch_grid(count: int, size: ProductSize, rates: PeRates, slices: tuple[int, int]) -> BatchGrid:
    """The blocks of each of `count` equal products, of which the operands lie on `slices`."""
    found: list[tuple[float, int, BatchGrid]] = []
    for pes in {max(1, rates.pes // count), *(1 << power for power in range(11))}:
        if pes <= rates.pes:
            own = rates._replace(pes=pes)
            rows, columns = grid(size, own, slices)
            block_ns = grid_cost(size, own, slices, (rows, columns))[0]
            turns = -(-count * rows * columns // rates.pes)
            time_ns = turns * block_ns
            found.append((time_ns, rows * columns, BatchGrid(rows, columns, time_ns)))
    return min(found)[2]


def product_grid(a: torch.Tensor, b: torch.Tensor) -> BatchGrid:
    """The grid of the products of two batches (batch, m, k) and (batch, k, n)."""
    count, m, k = a.shape
    size = ProductSize(m, k, b.shape[2], a.itemsize)
    per_matrix = [max(1, len(window_of(each).window.shards) // count) for each in (a, b)]
    return batch_grid(count, size, pe_rates(), (per_matrix[0], per_matrix[1]))


def _dealt_blocks(a: torch.Tensor, b: torch.Tensor) -> list[tuple[Pe, int, Span, Span]]:
    """The PE of each block, with the number of its matrix, its rows and its columns."""
    rates, properties = pe_rates(), get_device_properties()
    rows, columns, _ = product_grid(a, b)
    cells = [
        (number, row, column)
        for number in range(a.shape[0])
        for row in divided(a.shape[1], rows, rates.tile.m)
        for column in divided(b.shape[2], columns, rates.tile.n)
    ]
    pes = min(rates.pes, len(cells))
    return [
        (divmod(index * pes // len(cells), properties.pes_per_cube), *cell)
        for index, cell in enumerate(cells)
    ]


def _tasks(
    blocks: list[tuple[Pe, int, Span, Span]],
    a: torch.Tensor,
    operands: tuple[BatchOperand, BatchOperand],
    target: StridedWindow,
) -> tuple[dict[Pe, tuple[BatchTask, ...]], torch.Tensor | None]:
    """The tasks of each PE, and the tensor of the sums of a divided depth, if it is."""
    rates, memory = pe_rates(), pe_memory()
    columns = len({span for _, number, _, span in blocks if number == blocks[0][1]})
    depth = ProductDepth(a.shape[2], rates.tile.k, a.itemsize)
    start, (distance, pitch, _) = pointer_of(target), target.strides
    (left, _), (right, _) = operands
    planned = [
        (
            pe,
            number,
            scratch_plan(
                left.size(rows, rates.tile.m),
                right.size(across, rates.tile.n),
                depth,
                rates.step_ns,
                memory,
            ),
        )
        for pe, number, rows, across in blocks
    ]
    sums = None
    if any(len(plan.depths) > 1 for _, _, plan in planned):
        dtype = torch.int32 if a.dtype == torch.int8 else torch.float32
        sums = torch.empty(target.shape, dtype=dtype, device=a.device)
    tasks: dict[Pe, list[BatchTask]] = {}
    for turn, (pe, number, plan) in enumerate(planned):
        result = ResultMatrix(start + number * distance, pitch)
        task = ProductTask(plan, result, turn)
        turns = _turn(left, turn, len(planned), columns), _turn(right, turn, len(planned), 1)
        tasks.setdefault(pe, []).append(BatchTask(number, task, _sums_of(sums, number), turns))
    return {pe: tuple(each) for pe, each in tasks.items()}, sums


def _turn(operand: ProductOperand, block: int, blocks: int, columns: int) -> tuple[int, int]:
    """The part of a panel's rows with which a block begins: blocks that load the same rows, or any
    columns of the same rows, are spread over them.
    """
    if operand.stored_in_rows and operand.used_in_rows:
        return block % columns, columns
    return block, blocks


def _sums_of(sums: torch.Tensor | None, number: int) -> ResultMatrix | None:
    if sums is None:
        return None
    _, m, n = sums.shape
    return ResultMatrix(pointer_of(window_of(sums)) + number * m * n, n)


def _operand(x: torch.Tensor, *, used_in_rows: bool) -> _MatrixOperand:
    """The matrices as they are in memory; of matrices with other strides, a copy."""
    order = _order_in_memory(x)
    if order is None:
        x = x.contiguous()
        order = _MatrixOrder(x.shape[2], is_turned=False)
    rows, columns = x.shape[1:]
    stored = (columns, rows) if order.is_turned else (rows, columns)
    window = window_of(x)
    first = first_matrix(
        pointer_of(window),
        stored,
        order.pitch,
        is_turned=order.is_turned,
        used_in_rows=used_in_rows,
    )
    return _MatrixOperand(window, BatchOperand(first, x.stride(0)))


class _MatrixOrder(NamedTuple):
    """Matrices with neighbours in memory along their rows, or along their columns if `is_turned`,
    and the distance between rows or columns.
    """

    pitch: int
    is_turned: bool


def _order_in_memory(x: torch.Tensor) -> _MatrixOrder | None:
    """None if no row or column has neighbours in memory, or if they overlap."""
    (_, rows, columns), (_, down, across) = x.shape, x.stride()
    # The stride of an axis of one element may have any value, also 0.
    if columns == 1 and (down or rows == 1):
        return _MatrixOrder(max(down, 1), is_turned=False)
    if across == 1 and (down >= columns or rows == 1):
        return _MatrixOrder(max(down, columns), is_turned=False)
    if rows == 1 and across:
        return _MatrixOrder(across, is_turned=True)
    if down == 1 and across >= rows:
        return _MatrixOrder(across, is_turned=True)
    return None
