"""Launches of products of which one operand is copied to every cube (`gather_plan`)."""

from typing import NamedTuple

import torch

from kernbench.torch_backend.launching.cube_launch import cube_mesh
from kernbench.torch_backend.launching.launches import launched, pointer_of, window_of
from kernbench.torch_backend.runtime.storages import PAGE_BYTES, SHARE_BYTES, storages
from runtime.core.requests import PerPe
from runtime.device.kernels.gathered_products import (
    GatheredChunk,
    GatheredShape,
    OwnPart,
    multiply_gathered,
)
from runtime.device.products.gather_plan import (
    GatherMachine,
    GatherOperand,
    GatherPlan,
    gather_plan,
)
from runtime.device.products.gather_relays import relayed_copies
from runtime.device.products.gather_tasks import CopyLayout, gathered_chunks
from runtime.device.products.product_blocks import pe_rates
from runtime.device.regions.regions import Pe
from runtime.language.value import Pointer


def launch_gathered(
    factors: tuple[torch.Tensor, torch.Tensor],
    bias: torch.Tensor | None,
    out: torch.Tensor,
    *,
    own_is_b: bool,
) -> None:
    """Write the product of both factors, plus `bias`, to `out`, which is row-major, with a copy of
    the left factor in every cube, or of the right one if `own_is_b` is not set.
    """
    gathered, own = factors if own_is_b else factors[::-1]
    axis = 0 if own_is_b else 1
    shapes = matrix_in_memory(own, 1 - axis), matrix_in_memory(gathered, axis)
    assert shapes[0] is not None, "the choice has both operands"
    assert shapes[1] is not None, "the choice has both operands"
    itemsize = own.itemsize
    depth = factors[0].shape[1], itemsize
    plan = gather_plan(gather_machine(), *shapes, depth, own_is_b=own_is_b)
    assert plan is not None, "a product without a plan is not chosen"
    layout = CopyLayout.of(plan, PAGE_BYTES // itemsize, SHARE_BYTES // itemsize)
    total = len(plan.own) * layout.share
    copies = window_of(torch.empty(total, dtype=own.dtype, device=own.device))
    used = [window_of(each) for each in (gathered, own, out)]
    pointers = [pointer_of(each) for each in used]
    row = None
    if bias is not None:
        window = window_of(bias.contiguous())
        used.append(window)
        row = pointer_of(window)
    shape = GatheredShape(
        own_is_b=own_is_b,
        gathered_by_depth=not shapes[1].in_rows,
        own_by_depth=not shapes[0].in_rows,
        own_pitch=shapes[0].pitch,
        result_pitch=max(out.stride(0), out.shape[1]),
        step=plan.step,
        ring=plan.ring,
        early=plan.early,
        is_relayed=plan.is_relayed,
    )
    pes, start = cube_mesh().pes, pointer_of(copies)
    given = _chunks(plan, layout, shapes[1])
    tasks = list(given)
    parts = _OwnParts(plan, shape, pointers[1], pointers[2], row)
    arguments = (
        shape,
        PerPe(given),
        pointers[0],
        PerPe({each: start + each[0] * pes * layout.share for each in tasks}),
        PerPe({each: parts.of(each[0] * pes + each[1]) for each in tasks}),
    )
    launched("matmul", multiply_gathered, arguments, [*used, copies], tasks)


def _chunks(
    plan: GatherPlan, layout: CopyLayout, gathered: GatherOperand
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
    cubes = [cube for cube in range(len(plan.own) // pes) if any(plan.own[cube * pes :][:pes])]
    return {(cube, pe): by_pe[pe] for cube in cubes for pe in range(pes)}


class _OwnParts(NamedTuple):
    """The ranges of the own operand of all PEs, with pointers to the operand, the result and the
    bias.
    """

    plan: GatherPlan
    shape: GatheredShape
    own: Pointer
    result: Pointer
    bias: Pointer | None

    def of(self, number: int) -> tuple[OwnPart, ...]:
        """The ranges of a PE, numbered through all cubes."""
        plan, shape = self.plan, self.shape
        first, last = plan.parts[number % len(plan.parts)]
        if first == last:
            return ()
        pitch = 1 if shape.own_by_depth else shape.own_pitch
        return tuple(
            OwnPart(
                pointer=self.own + start * pitch,
                length=stop - start,
                result=self.result + row * shape.result_pitch + column,
                bias=None if self.bias is None else self.bias + column,
            )
            for start, stop in plan.own[number]
            for row, column in [(first, start) if shape.own_is_b else (start, first)]
        )


def gather_machine() -> GatherMachine:
    """The cubes and the rates of this SIP."""
    topology = storages().state.topology
    return GatherMachine(
        mesh=cube_mesh(),
        rates=pe_rates(),
        link_gbs=topology.ucie.bw_gbs,
        router_gbs=topology.cube.noc.link_bw_gbs,
        requests=topology.pe.dma.channels,
        burst_bytes=topology.hbm.burst_bytes,
        round_bytes=topology.hbm.burst_bytes * topology.hbm.num_pcs,
    )


def _is_plain(x: torch.Tensor) -> bool:
    """Whether the rows of a matrix are those in memory."""
    (rows, columns), (down, across) = x.shape, x.stride()
    return across == 1 and (down >= columns or rows == 1)


def _pitch(x: torch.Tensor) -> int:
    """The distance of the rows in memory."""
    (rows, columns), (down, across) = x.shape, x.stride()
    return max(down, columns) if _is_plain(x) else max(across, rows)


def matrix_in_memory(x: torch.Tensor, free: int) -> GatherOperand | None:
    """The operand with the free axis `free`; None if neither its rows nor its columns have their
    elements side by side, and in a SIP with PEs that are down.
    """
    if not storages().state.pes.is_whole:
        return None
    (rows, columns), (down, across) = x.shape, x.stride()
    if not (_is_plain(x) or (down == 1 and (across >= rows or columns == 1))):
        return None
    shards = [each.spec for each in window_of(x).window.shards if each.spec.nbytes]
    pes = cube_mesh().pes
    return GatherOperand(
        length=x.shape[free],
        pitch=_pitch(x),
        in_rows=x.stride(1 - free) == 1,
        ends=tuple((each.offset_bytes + each.nbytes) // x.itemsize for each in shards),
        holders=tuple(each.cube * pes + each.pe for each in shards),
    )
