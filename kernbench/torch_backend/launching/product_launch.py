"""One launch for the products of a batch of matrices, whose operands may have any pitch and order.

The results are cut into blocks of whole tiles, all matrices alike, and the blocks are dealt to the
PEs in the order of memory. The number of blocks of a matrix is that with the least estimated time:
the largest number of blocks of a PE times the time of a block (`product_plan.grid_cost`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from kernbench.torch_backend.launching.launches import launched, pointer_of, window_of
from kernbench.torch_backend.runtime.storages import storages
from runtime.core.requests import PerPe
from runtime.device.kernels.products import (
    ProductJob,
    ProductOperand,
    ProductTask,
    ResultMatrix,
    multiply,
    multiply_each,
)
from runtime.device.launches.strided_window import StridedWindow
from runtime.device.products.product_blocks import block_plans, pe_rates
from runtime.device.products.product_operands import MatrixOrder, first_matrix
from runtime.device.products.product_plan import BatchGrid, ProductSize, batch_grid, divided
from runtime.device.regions.regions import Pe
from runtime.model.placement import Span


class ProductCall(NamedTuple):
    """`out = a @ b + bias`: tensors (batch, m, k), (batch, k, n), (batch, m, n), (n,), all with
    elements. `out` is row-major in each matrix; it may have a wider type than the operands.
    """

    a: torch.Tensor
    b: torch.Tensor
    out: torch.Tensor
    bias: torch.Tensor | None = None


class _BlockedProduct(NamedTuple):
    """The arguments of the kernel on each PE, and all tensors of a product."""

    tasks: dict[Pe, tuple[ProductTask, ...]]
    operands: tuple[ProductOperand, ProductOperand, ProductOperand | None]
    used: list[StridedWindow]


def launch_products(call: ProductCall) -> None:
    """Compute the products of one call."""
    tasks, operands, used = _blocked(call, 0)
    launched("matmul", multiply, (PerPe(tasks), *operands), used, list(tasks))


def launch_products_together(calls: Sequence[ProductCall]) -> None:
    """Compute independent products in one launch: those of few blocks are on different PEs."""
    jobs, used = dict[Pe, list[ProductJob]](), list[StridedWindow]()
    first = 0
    for call in calls:
        product = _blocked(call, first)
        first += len(product.tasks)
        used += product.used
        for pe, tasks in product.tasks.items():
            jobs.setdefault(pe, []).append(ProductJob(tasks, *product.operands))
    given = PerPe({pe: tuple(each) for pe, each in sorted(jobs.items())})
    launched("matmul", multiply_each, (given,), used, list(jobs))


def _blocked(call: ProductCall, first: int) -> _BlockedProduct:
    """A product in blocks, which are dealt from the PE with the number `first` on."""
    a, b, out, bias = call
    left, window_a = stored_operand(a, used_in_rows=True)
    right, window_b = stored_operand(b)
    target = window_of(out)
    used, row = [target, window_a, window_b], None
    if bias is not None:
        window = window_of(bias.contiguous())
        used.append(window)
        order = MatrixOrder(1, is_turned=False)
        row = first_matrix(pointer_of(window), (1, out.shape[2]), order)
    tasks, sums = _tasks(_dealt_blocks(a, b, first), a, (left, right), target)
    if sums is not None:
        used.append(window_of(sums))
    return _BlockedProduct(tasks, (left, right, row), used)


def product_grid(a: torch.Tensor, b: torch.Tensor) -> BatchGrid:
    """The grid of the products of two batches (batch, m, k) and (batch, k, n)."""
    count, m, k = a.shape
    size = ProductSize(m, k, b.shape[2], a.itemsize)
    per_matrix = [max(1, len(window_of(each).window.shards) // count) for each in (a, b)]
    return batch_grid(count, size, pe_rates(), (per_matrix[0], per_matrix[1]))


def _dealt_blocks(a: torch.Tensor, b: torch.Tensor, first: int) -> list[tuple[Pe, int, Span, Span]]:
    """The PE of each block, with the number of its matrix, its rows and its columns."""
    rates, usable = pe_rates(), storages().state.pes
    rows, columns, _ = product_grid(a, b)
    cells = [
        (number, row, column)
        for number in range(a.shape[0])
        for row in divided(a.shape[1], rows, rates.tile.m)
        for column in divided(b.shape[2], columns, rates.tile.n)
    ]
    pes = min(rates.pes, len(cells))
    return [
        (usable.at((first + index * pes // len(cells)) % rates.pes), *cell)
        for index, cell in enumerate(cells)
    ]


def _tasks(
    blocks: list[tuple[Pe, int, Span, Span]],
    a: torch.Tensor,
    operands: tuple[ProductOperand, ProductOperand],
    target: StridedWindow,
) -> tuple[dict[Pe, tuple[ProductTask, ...]], torch.Tensor | None]:
    """The tasks of each PE, and the tensor of the sums of a divided depth, if it is."""
    columns = len({span for _, number, _, span in blocks if number == blocks[0][1]})
    start, (distance, pitch, _) = pointer_of(target), target.strides
    left, right = operands
    spans = [(rows, across) for _, _, rows, across in blocks]
    plans = block_plans(spans, left, right, (a.shape[2], a.itemsize))
    sums = None
    if any(len(plan.depths) > 1 for plan in plans):
        dtype = torch.int32 if a.dtype == torch.int8 else torch.float32
        sums = torch.empty(target.shape, dtype=dtype, device=a.device)
    tasks: dict[Pe, list[ProductTask]] = {}
    for turn, ((pe, number, _, _), plan) in enumerate(zip(blocks, plans, strict=True)):
        task = ProductTask(
            plan=plan,
            result=ResultMatrix(start + number * distance, pitch),
            turn=turn,
            sums=_sums_of(sums, number),
            number=number,
            starts=(_turn(left, turn, len(plans), columns), _turn(right, turn, len(plans), 1)),
        )
        tasks.setdefault(pe, []).append(task)
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


def stored_operand(
    x: torch.Tensor, *, used_in_rows: bool = False
) -> tuple[ProductOperand, StridedWindow]:
    """The matrices as they are in memory; of matrices with other strides, a copy."""
    order = _order_in_memory(x)
    if order is None:
        x = x.contiguous()
        order = MatrixOrder(x.shape[2], is_turned=False)
    rows, columns = x.shape[1:]
    shape = (columns, rows) if order.is_turned else (rows, columns)
    window, distance = window_of(x), x.stride(0)
    operand = first_matrix(
        pointer_of(window), shape, order, distance=distance, used_in_rows=used_in_rows
    )
    return operand, window


def _order_in_memory(x: torch.Tensor) -> MatrixOrder | None:
    """None if no row or column has neighbours in memory, or if they overlap."""
    (_, rows, columns), (_, down, across) = x.shape, x.stride()
    # The stride of an axis of one element may have any value, also 0.
    if columns == 1 and (down or rows == 1):
        return MatrixOrder(max(down, 1), is_turned=False)
    if across == 1 and (down >= columns or rows == 1):
        return MatrixOrder(max(down, columns), is_turned=False)
    if rows == 1 and across:
        return MatrixOrder(across, is_turned=True)
    if down == 1 and across >= rows:
        return MatrixOrder(across, is_turned=True)
    return None
