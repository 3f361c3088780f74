"""Launches of large products on all cubes, with panels that are copied to the cubes."""

import torch

from kernbench.torch_backend.launching.launches import launched, pointer_of, window_of
from kernbench.torch_backend.runtime.storages import storages
from runtime.core.requests import PerPe
from runtime.device.kernels.cube_products import CubeOperand, CubeResult, multiply_in_cubes
from runtime.device.launches.strided_window import StridedWindow
from runtime.device.products.cube_mesh import CubeMesh
from runtime.device.products.cube_plan import (
    CubeGrid,
    CubeOperandShape,
    OperandPlan,
    cube_plan,
)

_LEAST_MACS_OF_CUBE = 1 << 23
"""The multiply-adds of a cube from which copies of panels are faster than loads by each PE."""
_PART = 32
"""The rows and columns of the part of a PE are multiples of it."""
_CHUNKS = (128, 64)
"""The depth of a chunk: a longer one is multiplied faster, a shorter one is sooner there."""
_ALIGNMENT_BYTES = 16384
"""Scratch that the alignment of the values may take."""


def cube_grid(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> CubeGrid | None:
    """The grid of a large product `a @ b`, or None if the product is small or does not divide."""
    if not storages().state.pes.is_whole:
        # Its cubes and PEs send to their neighbours in the mesh.
        return None
    (m, k), n, mesh = a.shape, b.shape[1], cube_mesh()
    cubes = mesh.width * mesh.height
    if m * k * n < _LEAST_MACS_OF_CUBE * cubes or cubes == 1 or cubes % mesh.pes or mesh.pes % 2:
        return None
    if not (_has_rows(a) and _has_rows(b) and out.stride(1) == 1):
        return None
    grid = CubeGrid(mesh.height, mesh.width, 2, mesh.pes // 2, ())
    return _with_chunks(grid, a, b, mesh) if _divides(grid, (m, n)) else None


def _divides(grid: CubeGrid, shape: tuple[int, int]) -> bool:
    """Whether parts have whole multiples of `_PART`, and slots have no remainder."""
    pes = grid.part_rows * grid.part_columns
    panels = shape[0] // grid.rows, shape[1] // grid.columns
    return (
        shape[0] % (grid.rows * grid.part_rows * _PART) == 0
        and shape[1] % (grid.columns * grid.part_columns * _PART) == 0
        and all(each % pes == 0 for each in panels)
    )


def _with_chunks(
    grid: CubeGrid, a: torch.Tensor, b: torch.Tensor, mesh: CubeMesh
) -> CubeGrid | None:
    """The grid with chunks of the depth that fit the scratch."""
    panels = a.shape[0] // grid.rows, b.shape[1] // grid.columns
    parts, k = (panels[0] // grid.part_rows, panels[1] // grid.part_columns), a.shape[1]
    for chunk in _CHUNKS:
        # The sums, two panels of each operand, and two slots of two steps.
        loaded = min(2, k // chunk) * sum(parts) + 4 * sum(panels) // mesh.pes
        taken = 4 * parts[0] * parts[1] + loaded * chunk * a.itemsize
        whole = k % chunk == chunk % (mesh.width * mesh.height) == chunk % _PART == 0
        if whole and taken <= mesh.scratch_bytes - _ALIGNMENT_BYTES:
            return grid._replace(chunks=(chunk,) * (k // chunk))
    return None


def launch_in_cubes(
    factors: tuple[torch.Tensor, torch.Tensor],
    bias: torch.Tensor | None,
    out: torch.Tensor,
    grid: CubeGrid,
) -> None:
    """Write the product of both factors, plus `bias`, to `out`, on a grid that divides it."""
    a, b = factors
    left, right = (_shape(a, 0), _shape(b, 1))
    plan = cube_plan(cube_mesh(), left, right, grid)
    target = window_of(out)
    used, row = [target], None
    operands = list[CubeOperand]()
    for tensor, chosen in ((a, plan.a), (b, plan.b)):
        window = window_of(tensor)
        used.append(window)
        copies = _copies(tensor, chosen)
        if copies is not None:
            used.append(copies)
        operands.append(
            CubeOperand(
                source=pointer_of(window),
                copies=None if copies is None else pointer_of(copies),
                loads=chosen.loads,
            )
        )
    if bias is not None:
        window = window_of(bias.contiguous())
        used.append(window)
        row = pointer_of(window)
    result = CubeResult(pointer_of(target), max(out.stride(0), out.shape[1]), row)
    arguments = (PerPe(plan.tasks), plan.steps, *operands, result)
    launched("matmul", multiply_in_cubes, arguments, used, list(plan.tasks))


def cube_mesh() -> CubeMesh:
    """The cubes of this SIP."""
    topology = storages().state.topology
    mesh = topology.sip.cube_mesh
    return CubeMesh(
        width=mesh.w,
        height=mesh.h,
        pes=topology.pes_per_cube,
        scratch_bytes=topology.kernel_scratch_bytes,
    )


def _has_rows(x: torch.Tensor) -> bool:
    """Whether a matrix or its transpose is row-major, with any pitch."""
    (rows, columns), (down, across) = x.shape, x.stride()
    return (across == 1 and down >= columns) or (down == 1 and across >= rows)


def _copies(tensor: torch.Tensor, plan: OperandPlan) -> StridedWindow | None:
    if not plan.elements:
        return None
    return window_of(torch.empty(plan.elements, dtype=tensor.dtype, device=tensor.device))


def _shape(x: torch.Tensor, free: int) -> CubeOperandShape:
    window = window_of(x)
    in_rows = x.stride(1 - free) == 1
    shards = [each.spec for each in window.window.shards if each.spec.nbytes]
    return CubeOperandShape(
        length=x.shape[free],
        pitch=x.stride(free if in_rows else 1 - free),
        in_rows=in_rows,
        ends=tuple((each.offset_bytes + each.nbytes) // x.itemsize for each in shards),
        cubes=tuple(each.cube for each in shards),
    )
