"""One launch for the products of a batch of matrices, whose operands may have any pitch and order.

The results are cut into blocks of whole tiles, all matrices alike, and the blocks are dealt to the
PEs in the order of memory. The number of blocks of a matrix is that with the least estimated time:
the largest number of blocks of a PE times the time of a block (`product_plan.grid_cost`). Sums may
be cut into parts of the depth, which are products of their own.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from runtime.core.dtypes import float32, int8, int32
from runtime.core.requests import PerPe
from runtime.device.kernels.products import (
    ProductJob,
    ProductOperand,
    ProductTask,
    ResultMatrix,
    multiply,
    multiply_each,
)
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.launches.launch import launch_on
from runtime.device.launches.strided_window import StridedWindow
from runtime.device.operations.product_call import ProductCall
from runtime.device.products.product_blocks import block_plans, pe_rates
from runtime.device.products.product_operands import MatrixOrder, first_matrix
from runtime.device.products.product_plan import ProductSize, batch_grid, divided
from runtime.device.rank.rank_state import running_rank
from runtime.device.regions.regions import Pe
from runtime.model.placement import Span


class _BlockedProduct(NamedTuple):
    """The arguments of the kernel on each PE, and all tensors of a product."""

    tasks: dict[Pe, tuple[ProductTask, ...]]
    operands: tuple[ProductOperand, ProductOperand, ProductOperand | None, ResultMatrix | None]
    used: list[DeviceTensor]


class _PeBlock(NamedTuple):
    """A block of a part of the sums of a matrix, and its PE."""

    pe: Pe
    number: int
    part: int
    rows: Span
    columns: Span


def launch_blocks(call: ProductCall, parts: int = 1) -> None:
    """Compute the products of one call; the results of `parts` parts of the depth follow each other
    in `out`, a batch each.
    """
    tasks, operands, used = _blocked(call, parts, 0)
    launch_on("matmul", multiply, (PerPe(tasks), *operands), used, sorted(tasks), local=True)


def launch_blocks_together(calls: Sequence[ProductCall]) -> None:
    """Compute independent products in one launch: those of few blocks are on different PEs."""
    jobs, used = dict[Pe, list[ProductJob]](), list[DeviceTensor]()
    first = 0
    for call in calls:
        blocked = _blocked(call, 1, first)
        first += len(blocked.tasks)
        used += blocked.used
        for pe, tasks in blocked.tasks.items():
            jobs.setdefault(pe, []).append(ProductJob(tasks, *blocked.operands))
    given = PerPe({pe: tuple(each) for pe, each in sorted(jobs.items())})
    launch_on("matmul", multiply_each, (given,), used, sorted(jobs), local=True)


def _blocked(call: ProductCall, parts: int, first: int) -> _BlockedProduct:
    """A product in blocks, which are dealt from the PE with the number `first` on."""
    left, right = stored_operand(call.a, used_in_rows=True), stored_operand(call.b)
    row = None
    if call.bias is not None:
        order = MatrixOrder(1, is_turned=False)
        row = first_matrix(call.bias.pointer, (1, call.b.shape[2]), order)
    tasks, sums = _tasks(_dealt_blocks(call, parts, first), call, parts, (left, right))
    if sums is None:
        return _BlockedProduct(tasks, (left, right, row, None), call.used)
    between = ResultMatrix(sums.pointer, call.b.shape[2])
    return _BlockedProduct(tasks, (left, right, row, between), [*call.used, sums.window])


def _dealt_blocks(call: ProductCall, parts: int, first: int) -> list[_PeBlock]:
    """The blocks of all matrices with their PEs."""
    rates, usable = pe_rates(), running_rank().pes
    (count, m, depth), n = call.a.shape, call.b.shape[2]
    size = ProductSize(m, depth // parts, n, call.a.window.itemsize)
    of_a, of_b = (max(1, len(each.window.shards) // (count * parts)) for each in call[:2])
    rows, columns, _ = batch_grid(count * parts, size, rates, (of_a, of_b))
    cells = [
        *product(
            range(count),
            range(parts),
            divided(m, rows, rates.tile.m),
            divided(n, columns, rates.tile.n),
        )
    ]
    # Blocks are spread as the operands are.
    shards = max(len(each.window.shards) for each in (call.a, call.b))
    pes = min(rates.pes, max(len(cells), shards))
    return [
        _PeBlock(usable.at((first + index * pes // len(cells)) % rates.pes), *cell)
        for index, cell in enumerate(cells)
    ]


def _tasks(
    blocks: list[_PeBlock],
    call: ProductCall,
    parts: int,
    operands: tuple[ProductOperand, ProductOperand],
) -> tuple[dict[Pe, tuple[ProductTask, ...]], StridedWindow | None]:
    """The tasks of each PE, and the memory of the sums of a divided depth, if it is."""
    (count, m, depth), n = call.a.shape, call.b.shape[2]
    left, right = operands
    length = depth // parts
    spans = [(each.rows, each.columns) for each in blocks]
    plans = block_plans(spans, left, right, (length, call.a.window.itemsize))
    sums = None
    if any(len(plan.depths) > 1 for plan in plans):
        dtype = int32 if call.a.window.dtype == int8 else float32
        sums = call.new(parts * count * m * n, dtype)
    tasks: dict[Pe, list[ProductTask]] = {}
    for turn, (block, plan) in enumerate(zip(blocks, plans, strict=True)):
        number, matrix = block.number, block.part * count + block.number
        (of_a, _, deep_a), (of_b, deep_b, _) = call.a.strides, call.b.strides
        distance, pitch, _ = call.out.strides
        task = ProductTask(
            plan=plan,
            result=ResultMatrix(call.out.pointer + matrix * distance, pitch),
            turn=turn,
            moved=(
                number * of_a + block.part * length * deep_a,
                number * of_b + block.part * length * deep_b,
                matrix * m * n,
            ),
            starts=(_turn(left, turn, len(plans)), _turn(right, turn, len(plans))),
            has_bias=not block.part,
        )
        tasks.setdefault(block.pe, []).append(task)
    return {pe: tuple(each) for pe, each in tasks.items()}, sums


def _turn(operand: ProductOperand, block: int, blocks: int) -> tuple[int, int]:
    """The part of a panel's rows with which a block begins. Blocks that load any columns of the
    same rows are spread over them; a panel of whole rows is one request for each slice.
    """
    return (0, 1) if operand.stored_in_rows else (block, blocks)


def stored_operand(x: StridedWindow, *, used_in_rows: bool = False) -> ProductOperand:
    """The first matrix as it is in memory."""
    order = order_in_memory(x)
    assert order is not None, "an operand without neighbours in memory is copied before"
    rows, columns = x.shape[1:]
    shape = (columns, rows) if order.is_turned else (rows, columns)
    return first_matrix(x.pointer, shape, order, used_in_rows=used_in_rows)


def order_in_memory(x: StridedWindow) -> MatrixOrder | None:
    """The order of matrices in memory; None if no row or column has neighbours there, or if they
    overlap.
    """
    (_, rows, columns), (_, down, across) = x.shape, x.strides
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
