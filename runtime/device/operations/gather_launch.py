"""Launches of products of which one operand is copied to every cube (`gather_plan`)."""

from collections.abc import Sequence
from typing import NamedTuple

from runtime.core.requests import PerPe
from runtime.device.kernels.gathered_products import (
    GatheredChunk,
    GatheredShape,
    OwnPart,
    multiply_gathered,
)
from runtime.device.launches.launch import launch_on
from runtime.device.launches.strided_window import StridedWindow
from runtime.device.operations.product_call import ProductCall
from runtime.device.products.gather_machine import GatherMachine, GatherOperand
from runtime.device.products.gather_plan import GatherPlan, gather_plan
from runtime.device.products.gather_relays import relayed_copies
from runtime.device.products.gather_tasks import CopyLayout, gathered_chunks, of_batch
from runtime.device.products.product_blocks import cube_mesh, pe_rates
from runtime.device.rank.rank_state import running_rank
from runtime.device.regions.regions import Pe
from runtime.language.value import Pointer


def launch_gathered(call: ProductCall, *, own_is_b: bool) -> None:
    """Compute the products of a call with a copy of the left factor in every cube, or of the right
    one if `own_is_b` is not set. Of a batch a cube has copies of the matrices that it multiplies.
    """
    gathered, own = (call.a, call.b) if own_is_b else (call.b, call.a)
    axis = 1 if own_is_b else 2
    shapes = matrix_in_memory(own, 3 - axis), matrix_in_memory(gathered, axis)
    assert shapes[0] is not None, "the choice has both operands"
    assert shapes[1] is not None, "the choice has both operands"
    count, _, depth = call.a.shape
    size = depth, own.window.itemsize
    plan = gather_plan(gather_machine(), *shapes, size, own_is_b=own_is_b, batch=count)
    assert plan is not None, "a product without a plan is not chosen"
    shape = GatheredShape(
        own_is_b=own_is_b,
        gathered_by_depth=not shapes[1].in_rows,
        own_by_depth=not shapes[0].in_rows,
        own_pitch=shapes[0].pitch,
        result_pitch=max(call.out.strides[1], call.out.shape[2]),
        step=plan.step,
        ring=plan.ring,
        early=plan.early,
        is_relayed=plan.is_relayed,
    )
    numbers = _numbers(plan, shapes[0].length)
    layout = CopyLayout.of(plan, own.window.itemsize, max(map(len, numbers)))
    copies = call.new(len(plan.own) * layout.share, own.window.dtype)
    chunks = _chunks(plan, layout, shapes[1], numbers)
    pes = sorted(chunks)
    parts = _OwnParts(call, plan, shape, layout, shapes[0].length)
    of_cube = {pe: copies.pointer + pe[0] * cube_mesh().pes * layout.share for pe in pes}
    arguments = (
        shape,
        PerPe(chunks),
        PerPe({pe: gathered.pointer + numbers[pe[0]][0] * gathered.strides[0] for pe in pes}),
        PerPe(of_cube),
        PerPe({pe: parts.of(pe, numbers[pe[0]][0], of_cube[pe]) for pe in pes}),
    )
    launch_on("matmul", multiply_gathered, arguments, [*call.used, copies.window], pes, local=True)


def _numbers(plan: GatherPlan, length: int) -> list[range]:
    """The matrices of which the PEs of each cube have ranges; every cube copies the only one of a
    product with relays.
    """
    pes, numbers = len(plan.chunks[0]), list[range]()
    for first in range(0, len(plan.own), pes):
        starts = [start for ranges in plan.own[first : first + pes] for start, _ in ranges]
        if not starts:
            numbers.append(range(1 if plan.is_relayed else 0))
        else:
            numbers.append(range(min(starts) // length, max(starts) // length + 1))
    return numbers


def _chunks(
    plan: GatherPlan, layout: CopyLayout, gathered: GatherOperand, numbers: Sequence[range]
) -> dict[Pe, tuple[GatheredChunk, ...]]:
    """The chunks of each PE that takes part."""
    by_pe = gathered_chunks(plan, layout, gathered.pitch, depth_in_rows=not gathered.in_rows)
    pes = len(by_pe)
    if plan.is_relayed:
        copied = relayed_copies(plan, layout, cube_mesh(), gathered)
        return {
            (cube, pe): tuple(
                chunk._replace(copied=slots)
                for chunk, slots in zip(by_pe[pe], copied[cube, pe], strict=True)
            )
            for cube, pe in copied
        }
    # A cube without a range of the own operand needs no copies.
    by_count = {
        count: [
            tuple(of_batch(chunk, count, gathered.distance, layout) for chunk in chunks)
            for chunks in by_pe
        ]
        for count in {len(each) for each in numbers}
    }
    return {
        (cube, pe): by_count[len(of_cube)][pe]
        for cube, of_cube in enumerate(numbers)
        for pe in range(pes if of_cube else 0)
    }


class _OwnParts(NamedTuple):
    """The ranges of the own operand of all PEs, whose free axis has `length` elements."""

    call: ProductCall
    plan: GatherPlan
    shape: GatheredShape
    layout: CopyLayout
    length: int

    def of(self, pe: Pe, before: int, copies: Pointer) -> tuple[OwnPart, ...]:
        """The ranges of a PE, of whose cube the matrix `before` is the first one."""
        (a, b, out, bias, *_), plan, shape = self.call, self.plan, self.shape
        own, number_of = (b if shape.own_is_b else a), pe[0] * len(plan.chunks[0]) + pe[1]
        first, last = plan.parts[pe[1] % len(plan.parts)]
        parts = list[OwnPart]()
        for start, stop in plan.own[number_of] if first < last else ():
            number, begin = divmod(start, self.length)
            row, column = (first, begin) if shape.own_is_b else (begin, first)
            behind = begin * (1 if shape.own_by_depth else shape.own_pitch)
            result = out.pointer + number * out.strides[0]
            parts.append(
                OwnPart(
                    pointer=own.pointer + number * own.strides[0] + behind,
                    length=stop - start,
                    result=result + row * shape.result_pitch + column,
                    bias=None if bias is None else bias.pointer + column,
                    copies=copies + (number - before) * self.layout.matrix,
                )
            )
        return tuple(parts)


def gather_machine() -> GatherMachine:
    """The cubes and the rates of this SIP."""
    topology = running_rank().topology
    return GatherMachine(
        mesh=cube_mesh(),
        rates=pe_rates(),
        link_gbs=topology.ucie.bw_gbs,
        router_gbs=topology.cube.noc.link_bw_gbs,
        requests=topology.pe.dma.channels,
        burst_bytes=topology.hbm.burst_bytes,
        round_bytes=topology.hbm.burst_bytes * topology.hbm.num_pcs,
    )


def _is_plain(x: StridedWindow) -> bool:
    """Whether the rows of matrices are those in memory."""
    (_, rows, columns), (_, down, across) = x.shape, x.strides
    return across == 1 and (down >= columns or rows == 1)


def _pitch(x: StridedWindow) -> int:
    """The distance of the rows in memory."""
    (_, rows, columns), (_, down, across) = x.shape, x.strides
    return max(down, columns) if _is_plain(x) else max(across, rows)


def matrix_in_memory(x: StridedWindow, free: int) -> GatherOperand | None:
    """The operand with the free axis `free`, 1 or 2; None if neither the rows nor the columns of
    its matrices have their elements side by side, and in a SIP with PEs that are down.
    """
    if not running_rank().pes.is_whole:
        return None
    (_, rows, columns), (distance, down, across) = x.shape, x.strides
    if not (_is_plain(x) or (down == 1 and (across >= rows or columns == 1))):
        return None
    memory, pes = x.window, cube_mesh().pes
    shards = [each.spec for each in memory.shards if each.spec.nbytes]
    return GatherOperand(
        length=x.shape[free],
        pitch=_pitch(x),
        in_rows=x.strides[3 - free] == 1,
        ends=tuple((each.offset_bytes + each.nbytes) // memory.itemsize for each in shards),
        holders=tuple(each.cube * pes + each.pe for each in shards),
        distance=distance,
    )
