"""One launch for independent products: a PE loads what its blocks of several of them share once."""

from collections.abc import Sequence
from typing import NamedTuple

from kernbench.torch_backend.launching.gather_launch import gather_machine
from kernbench.torch_backend.launching.launches import launched, pointer_of, window_of
from kernbench.torch_backend.launching.product_launch import ProductCall, stored_operand
from kernbench.torch_backend.runtime.storages import storages
from runtime.core.requests import PerPe
from runtime.device.kernels.joined_products import (
    RegionPart,
    SharingBlock,
    StoredRegion,
    multiply_sharing,
)
from runtime.device.kernels.products import ProductOperand
from runtime.device.launches.strided_window import StridedWindow
from runtime.device.products.joined_plan import (
    JoinedBlock,
    JoinedOperand,
    JoinedProduct,
    PeBlocks,
    Region,
    joined_plan,
)
from runtime.device.products.product_plan import ProductSize
from runtime.language.value import Pointer

_Memory = tuple[Pointer, int]
"""The first element of a matrix in memory, and its pitch."""


class _StoredProduct(NamedTuple):
    plan: JoinedProduct
    out: StridedWindow


def launch_joined(calls: Sequence[ProductCall]) -> bool:
    """Compute independent products of one type, each of one matrix; False if the operands are too
    large for the plan.
    """
    memories, used = dict[_Memory, int](), list[StridedWindow]()
    products = [_stored(call, memories, used) for call in calls]
    plan = joined_plan(tuple(each.plan for each in products), gather_machine())
    if plan is None:
        return False
    places, pes = list(memories), storages().state.pes
    tasks = {pes.at(number): _task(share, products, places) for number, share in enumerate(plan)}
    arguments = (
        PerPe({pe: regions for pe, (regions, _) in tasks.items()}),
        PerPe({pe: blocks for pe, (_, blocks) in tasks.items()}),
    )
    launched("matmul", multiply_sharing, arguments, used, list(tasks))
    return True


def _stored(
    call: ProductCall, memories: dict[_Memory, int], used: list[StridedWindow]
) -> _StoredProduct:
    """A product as the plan has it; its tensors are added to `used`, their memory to `memories`."""

    def numbered(operand: ProductOperand, window: StridedWindow) -> JoinedOperand:
        used.append(window)
        (piece,) = operand.pieces
        number = memories.setdefault((piece.pointer, piece.pitch), len(memories))
        return JoinedOperand(
            matrix=number,
            in_rows=operand.stored_in_rows,
            pitch=piece.pitch,
            slices=len(window.window.shards),
        )

    a, b, out, bias = call
    size = ProductSize(a.shape[1], a.shape[2], b.shape[2], a.itemsize)
    left, right = stored_operand(a, used_in_rows=True), stored_operand(b)
    row = None if bias is None else stored_operand(bias.contiguous().reshape(1, 1, -1))
    target = window_of(out)
    used.append(target)
    plan = JoinedProduct(
        size=size,
        a=numbered(*left),
        b=numbered(*right),
        bias=None if row is None else numbered(*row),
    )
    return _StoredProduct(plan, target)


def _task(
    share: PeBlocks, products: Sequence[_StoredProduct], places: Sequence[_Memory]
) -> tuple[tuple[StoredRegion, ...], tuple[SharingBlock, ...]]:
    """The arguments of the kernel on a PE."""
    regions = tuple(_in_memory(each, *places[each.matrix]) for each in share.regions)
    blocks = tuple(_block(each, products[each.number], share.regions) for each in share.blocks)
    return regions, blocks


def _in_memory(region: Region, start: Pointer, pitch: int) -> StoredRegion:
    (top, bottom), (left, right) = region.rows, region.columns
    return StoredRegion(start + top * pitch + left, (bottom - top, right - left), pitch)


def _block(block: JoinedBlock, product: _StoredProduct, regions: Sequence[Region]) -> SharingBlock:
    a, b, *rows = block.regions
    # The operands as they are used: `a` by rows of the result, `b` by columns.
    left = _part(a, regions, is_turned=not product.plan.a.in_rows)
    right = _part(b, regions, is_turned=product.plan.b.in_rows)
    bias = _part(rows[0], regions, is_turned=False) if rows else None
    _, pitch, _ = product.out.strides
    whole = Region(0, block.rows, block.columns)
    return SharingBlock(left, right, bias, _in_memory(whole, pointer_of(product.out), pitch))


def _part(region: Region, regions: Sequence[Region], *, is_turned: bool) -> RegionPart:
    number = next(number for number, each in enumerate(regions) if each.contains(region))
    (top, bottom), (left, right) = region.rows, region.columns
    row, column = regions[number].rows[0], regions[number].columns[0]
    return RegionPart(number, (top - row, bottom - row), (left - column, right - column), is_turned)
