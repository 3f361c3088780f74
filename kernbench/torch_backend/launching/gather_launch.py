"""Launches of products of which one operand is copied to every cube (`gather_plan`)."""

import torch

from kernbench.torch_backend.launching.cube_launch import cube_mesh
from kernbench.torch_backend.launching.launches import launched, pointer_of, window_of
from kernbench.torch_backend.runtime.storages import PAGE_BYTES, SHARE_BYTES, storages
from runtime.core.requests import PerPe
from runtime.device.kernels.gathered_products import (
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
from runtime.device.products.gather_tasks import CopyLayout, gathered_chunks
from runtime.device.products.product_blocks import pe_rates
from runtime.language.value import Pointer


class GatherProduct:
    """The product of two matrices with a copy of one operand in every cube; the other one is `b` if
    `own_is_b` is set. `plan` is None where no plan fits.
    """

    def __init__(self, a: torch.Tensor, b: torch.Tensor, *, own_is_b: bool) -> None:
        self._own_is_b = own_is_b
        self._gathered, self._own = (a, b) if own_is_b else (b, a)
        self._axis = 0 if own_is_b else 1
        gathered, own = _operand(self._gathered, self._axis), _operand(self._own, 1 - self._axis)
        self.plan: GatherPlan | None = None
        if gathered is not None and own is not None:
            depth = a.shape[1], a.itemsize
            self.plan = gather_plan(gather_machine(), own, gathered, depth, own_is_b=own_is_b)

    @property
    def time_ns(self) -> float:
        """The estimated time; infinite without a plan."""
        return float("inf") if self.plan is None else self.plan.time_ns

    def launch(self, bias: torch.Tensor | None, out: torch.Tensor) -> None:
        """Write the product, plus `bias`, to `out`, which is row-major."""
        plan, itemsize = self.plan, self._gathered.itemsize
        assert plan is not None, "a product without a plan is not launched"
        layout = CopyLayout.of(plan, PAGE_BYTES // itemsize, SHARE_BYTES // itemsize)
        copies = window_of(
            torch.empty(
                len(plan.own) * layout.share,
                dtype=self._gathered.dtype,
                device=self._gathered.device,
            )
        )
        used = [window_of(each) for each in (self._gathered, self._own, out)]
        bias_row = None
        if bias is not None:
            row = window_of(bias.contiguous())
            used.append(row)
            bias_row = pointer_of(row)
        gathered, own, result = map(pointer_of, used[:3])
        by_depth = self._gathered.stride(1 - self._axis) != 1
        shape = GatheredShape(
            own_is_b=self._own_is_b,
            gathered_by_depth=by_depth,
            own_by_depth=self._own.stride(self._axis) != 1,
            own_pitch=_pitch(self._own),
            result_pitch=max(out.stride(0), out.shape[1]),
            ring=plan.ring,
        )
        chunks = gathered_chunks(plan, layout, _pitch(self._gathered), depth_in_rows=by_depth)
        pes = cube_mesh().pes
        # A cube without a range of the own operand needs no copies.
        cubes = [cube for cube in range(len(plan.own) // pes) if any(plan.own[cube * pes :][:pes])]
        places = [(cube, pe) for cube in cubes for pe in range(pes)]
        start = pointer_of(copies)
        arguments = (
            shape,
            PerPe({(cube, pe): chunks[pe] for cube, pe in places}),
            gathered,
            PerPe({each: start + each[0] * pes * layout.share for each in places}),
            PerPe(
                {
                    (cube, pe): self._parts(cube * pes + pe, shape, (own, result, bias_row))
                    for cube, pe in places
                }
            ),
        )
        launched("matmul", multiply_gathered, arguments, [*used, copies], places)

    def _parts(
        self, number: int, shape: GatheredShape, pointers: tuple[Pointer, Pointer, Pointer | None]
    ) -> tuple[OwnPart, ...]:
        """The ranges of a PE."""
        plan, (own, result, bias) = self.plan, pointers
        assert plan is not None
        first, last = plan.parts[number % len(plan.parts)]
        if first == last:
            return ()
        own_pitch = 1 if shape.own_by_depth else shape.own_pitch
        return tuple(
            OwnPart(
                pointer=own + start * own_pitch,
                length=stop - start,
                result=result + row * shape.result_pitch + column,
                bias=None if bias is None else bias + column,
            )
            for start, stop in plan.own[number]
            for row, column in [(first, start) if self._own_is_b else (start, first)]
        )


def gather_machine() -> GatherMachine:
    """The cubes and the rates of this SIP."""
    topology = storages().state.topology
    return GatherMachine(
        mesh=cube_mesh(),
        rates=pe_rates(),
        link_gbs=topology.ucie.bw_gbs,
        router_gbs=topology.cube.noc.link_bw_gbs,
    )


def _is_plain(x: torch.Tensor) -> bool:
    """Whether the rows of a matrix are those in memory."""
    (rows, columns), (down, across) = x.shape, x.stride()
    return across == 1 and (down >= columns or rows == 1)


def _pitch(x: torch.Tensor) -> int:
    """The distance of the rows in memory."""
    (rows, columns), (down, across) = x.shape, x.stride()
    return max(down, columns) if _is_plain(x) else max(across, rows)


def _operand(x: torch.Tensor, free: int) -> GatherOperand | None:
    """The operand with the free axis `free`; None if neither its rows nor its columns have their
    elements side by side.
    """
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
