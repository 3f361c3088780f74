"""Products of matrices by the plan with the least estimated time, for both faces of the device."""

from runtime.ccl.exchange import chunk_bounds
from runtime.core.dtypes import float32, int8
from runtime.core.requests import PerPe
from runtime.device.kernels.row_sums import AddedRows, sum_of_columns
from runtime.device.launches.launch import launch_on
from runtime.device.launches.strided_window import StridedWindow
from runtime.device.movers.movers import spread
from runtime.device.operations.block_launch import launch_blocks
from runtime.device.operations.cube_launch import cube_grid, launch_in_cubes
from runtime.device.operations.gather_launch import (
    gather_machine,
    launch_gathered,
    matrix_in_memory,
)
from runtime.device.operations.product_call import ProductCall
from runtime.device.products.product_choice import ProductChoice, ProductMatrices, product_choice
from runtime.device.products.product_plan import ACCUMULATOR_BYTES, ProductSize
from runtime.device.rank.rank_state import running_rank
from runtime.language.value import row_major

_ALIGNMENT_BYTES = 2048
"""Scratch that the alignment of the values of a block may take."""


def launch_product(call: ProductCall) -> None:
    """Compute the products of a call; those of int8, whose sums are int32, in blocks."""
    if call.a.window.dtype == int8:
        launch_blocks(call)
        return
    product = _matrices(call)
    choice = product_choice(product)
    if choice.kind == "copies":
        launch_gathered(call, own_is_b=choice.own_is_b)
    elif choice.kind == "grid":
        assert product.grid is not None, "a grid that divides is chosen"
        launch_in_cubes(call, product.grid)
    elif choice.kind == "each":
        for number in range(call.a.shape[0]):
            launch_product(call.matrix(number))
    elif choice.parts == 1:
        launch_blocks(call)
    else:
        _launch_parts(call, choice.parts)


def choice_of(call: ProductCall) -> ProductChoice:
    """The plan of a call."""
    return product_choice(_matrices(call))


def _matrices(call: ProductCall) -> ProductMatrices:
    (count, m, k), n = call.a.shape, call.b.shape[2]
    return ProductMatrices(
        machine=gather_machine(),
        batch=count,
        size=ProductSize(m, k, n, call.a.window.itemsize),
        a=matrix_in_memory(call.a, 1),
        b=matrix_in_memory(call.b, 2),
        shares=(len(call.a.window.shards), len(call.b.window.shards)),
        grid=None if call.in_order else cube_grid(call),
        # The sums of parts are those of whole rows, in memory without gaps.
        most_parts=k if call.out.is_contiguous and not call.in_order else 1,
        in_order=call.in_order,
    )


def _launch_parts(call: ProductCall, parts: int) -> None:
    """The products in parts of the depth, which are summed and rounded once."""
    count, m, n = call.out.shape
    memory = call.new(parts * count * m * n, float32).window
    shape = parts * count, m, n
    sums = StridedWindow(memory, shape, row_major(shape))
    launch_blocks(call._replace(out=sums), parts)
    columns, target = count * m * n, call.out.window
    movers = spread(columns, target.itemsize)
    bounds = chunk_bounds(columns, len(movers))
    spans = {(spec.cube, spec.pe): span for spec, span in zip(movers, bounds, strict=True)}
    room = running_rank().topology.kernel_scratch_bytes - _ALIGNMENT_BYTES
    at_once = max(1, room // (3 * ACCUMULATOR_BYTES) // parts)
    rows = AddedRows(parts, columns, at_once, float32)
    arguments = (PerPe(spans), rows, 1.0, sums.pointer, call.out.pointer)
    launch_on("sum", sum_of_columns, arguments, [memory, target], sorted(spans), local=True)
