"""One launch for independent products and elementwise functions of them: a PE loads what its blocks
of several products share once.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from kernbench.torch_backend.launching.launches import launched, pointer_of, window_of
from kernbench.torch_backend.runtime.storages import storages
from runtime.core.requests import PerPe
from runtime.device.launches.strided_window import StridedWindow
from runtime.device.operations.block_launch import order_in_memory, stored_operand
from runtime.device.operations.gather_launch import gather_machine
from runtime.device.products.joined_kernel import (
    Epilogue,
    RegionPart,
    SharingBlock,
    StoredRegion,
    multiply_sharing,
)
from runtime.device.products.joined_plan import (
    JoinedBlock,
    JoinedFactors,
    JoinedOperand,
    JoinedProduct,
    MatrixRegion,
    PeBlocks,
    joined_plan,
)
from runtime.device.products.product_plan import ProductSize
from runtime.device.rank.properties import get_device_properties
from runtime.language.value import Pointer

_Memory = tuple[Pointer, int]
"""The first element of a matrix in memory, and its pitch."""


class JoinedCall(NamedTuple):
    """A sum of products `a @ b` of matrices, of one type, plus a bias; with an epilogue, functions
    of it and of the matrices `beside` it, and sums of their rows. The results are contiguous.
    """

    factors: Sequence[tuple[torch.Tensor, torch.Tensor]]
    bias: torch.Tensor | None
    epilogue: Epilogue | None
    beside: Sequence[torch.Tensor]
    outs: Sequence[torch.Tensor]

    @property
    def shape(self) -> tuple[int, int]:
        """The rows and columns of the sum."""
        a, b = self.factors[0]
        return a.shape[0], b.shape[1]


class _StoredProduct(NamedTuple):
    plan: JoinedProduct
    epilogue: Epilogue | None
    beside: Sequence[Pointer]
    outs: Sequence[Pointer]


def launch_joined(calls: Sequence[JoinedCall]) -> bool:
    """Compute independent products in a launch; False if the plan is for smaller operands."""
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


def with_neighbours(x: torch.Tensor) -> StridedWindow:
    """Matrices whose rows or columns have neighbours in memory: `x`, or a copy."""
    window = window_of(x)
    return window if order_in_memory(window) is not None else window_of(x.contiguous())


def _stored(
    call: JoinedCall, memories: dict[_Memory, int], used: list[StridedWindow]
) -> _StoredProduct:
    """A product as the plan has it; its tensors are added to `used`, their memory to `memories`."""

    def numbered(x: torch.Tensor, *, used_in_rows: bool = False) -> JoinedOperand:
        window = with_neighbours(x.unsqueeze(0))
        operand = stored_operand(window, used_in_rows=used_in_rows)
        used.append(window)
        (piece,) = operand.pieces
        return JoinedOperand(
            matrix=memories.setdefault((piece.pointer, piece.pitch), len(memories)),
            in_rows=operand.stored_in_rows,
            pitch=piece.pitch,
            slices=len(window.window.shards),
        )

    def started(x: torch.Tensor) -> Pointer:
        used.append(window_of(x))
        return pointer_of(used[-1])

    factors, bias, epilogue, beside, outs = call
    sums = (False,) if epilogue is None else epilogue.sums
    (rows, columns), depth = call.shape, sum(a.shape[1] for a, _ in factors)
    plan = JoinedProduct(
        size=ProductSize(rows, depth, columns, outs[0].itemsize),
        factors=tuple(
            JoinedFactors(numbered(a, used_in_rows=True), numbered(b), a.shape[1])
            for a, b in factors
        ),
        bias=None if bias is None else numbered(bias.unsqueeze(0)),
        beside=len(beside),
        results=sums.count(False),
        element_ns=0.0 if epilogue is None else _element_ns(epilogue),
        sums_rows=any(sums),
    )
    return _StoredProduct(
        plan=plan,
        epilogue=epilogue,
        beside=[started(each.contiguous()) for each in beside],
        outs=[started(each) for each in outs],
    )


def _element_ns(epilogue: Epilogue) -> float:
    properties = get_device_properties()
    cycles = sum(properties.vector_cycles.get(each.operation, 1) for each in epilogue.steps)
    return cycles / (properties.vector_lanes * properties.vector_clock_ghz)


def _task(
    share: PeBlocks, products: Sequence[_StoredProduct], places: Sequence[_Memory]
) -> tuple[tuple[StoredRegion, ...], tuple[SharingBlock, ...]]:
    """The arguments of the kernel on a PE."""
    regions = tuple(_in_memory(each, *places[each.matrix]) for each in share.regions)
    blocks = tuple(_block(each, products[each.number], share.regions) for each in share.blocks)
    return regions, blocks


def _in_memory(region: MatrixRegion, start: Pointer, pitch: int) -> StoredRegion:
    (top, bottom), (left, right) = region.rows, region.columns
    return StoredRegion(start + top * pitch + left, (bottom - top, right - left), pitch)


def _block(
    block: JoinedBlock, product: _StoredProduct, regions: Sequence[MatrixRegion]
) -> SharingBlock:
    regions_of = iter(block.regions)
    # The operands as they are used: `a` by rows of the result, `b` by columns.
    factors = tuple(
        (
            _part(next(regions_of), regions, is_turned=not a.in_rows),
            _part(next(regions_of), regions, is_turned=b.in_rows),
        )
        for a, b, _ in product.plan.factors
    )
    row = next(regions_of, None)
    sums = (False,) if product.epilogue is None else product.epilogue.sums
    whole, pitch = MatrixRegion(0, block.rows, block.columns), product.plan.size.n
    return SharingBlock(
        factors=factors,
        bias=None if row is None else _part(row, regions, is_turned=False),
        epilogue=product.epilogue,
        beside=tuple(_in_memory(whole, each, pitch) for each in product.beside),
        outs=tuple(
            _in_memory(whole._replace(rows=(0, 1)) if is_sum else whole, each, pitch)
            for each, is_sum in zip(product.outs, sums, strict=True)
        ),
    )


def _part(region: MatrixRegion, regions: Sequence[MatrixRegion], *, is_turned: bool) -> RegionPart:
    number = next(number for number, each in enumerate(regions) if each.contains(region))
    (top, bottom), (left, right) = region.rows, region.columns
    row, column = regions[number].rows[0], regions[number].columns[0]
    return RegionPart(number, (top - row, bottom - row), (left - column, right - column), is_turned)
