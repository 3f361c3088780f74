"""Launches of large products on all cubes, with panels that are copied to the cubes."""

from runtime.core.requests import PerPe
from runtime.device.kernels.cube_products import CubeOperand, CubeResult, multiply_in_cubes
from runtime.device.launches.launch import launch_on
from runtime.device.launches.strided_window import StridedWindow
from runtime.device.operations.product_call import ProductCall
from runtime.device.products.cube_mesh import CubeMesh
from runtime.device.products.cube_plan import (
    CubeGrid,
    CubeOperandShape,
    OperandPlan,
    cube_plan,
)
from runtime.device.products.product_blocks import cube_mesh
from runtime.device.rank.rank_state import running_rank

_LEAST_MACS_OF_CUBE = 1 << 23
"""The multiply-adds of a cube from which copies of panels are faster than loads by each PE."""
_PART = 32
"""The rows and columns of the part of a PE are multiples of it."""
_CHUNKS = (128, 64)
"""The depth of a chunk: a longer one is multiplied faster, a shorter one is sooner there."""
_ALIGNMENT_BYTES = 16384
"""Scratch that the alignment of the values may take."""


def cube_grid(call: ProductCall) -> CubeGrid | None:
    """The grid of a large product, or None if it is small or does not divide."""
    if not running_rank().pes.is_whole:
        # Its cubes and PEs send to their neighbours in the mesh.
        return None
    (_, m, k), n, mesh = call.a.shape, call.b.shape[2], cube_mesh()
    cubes = mesh.width * mesh.height
    if m * k * n < _LEAST_MACS_OF_CUBE * cubes or cubes == 1 or cubes % mesh.pes or mesh.pes % 2:
        return None
    if not (_has_rows(call.a) and _has_rows(call.b) and call.out.strides[2] == 1):
        return None
    grid = CubeGrid(mesh.height, mesh.width, 2, mesh.pes // 2, ())
    return _with_chunks(grid, call, mesh) if _divides(grid, (m, n)) else None


def _divides(grid: CubeGrid, shape: tuple[int, int]) -> bool:
    """Whether parts have whole multiples of `_PART`, and slots have no remainder."""
    pes = grid.part_rows * grid.part_columns
    panels = shape[0] // grid.rows, shape[1] // grid.columns
    return (
        shape[0] % (grid.rows * grid.part_rows * _PART) == 0
        and shape[1] % (grid.columns * grid.part_columns * _PART) == 0
        and all(each % pes == 0 for each in panels)
    )


def _with_chunks(grid: CubeGrid, call: ProductCall, mesh: CubeMesh) -> CubeGrid | None:
    """The grid with chunks of the depth that fit the scratch."""
    (_, m, k), n, itemsize = call.a.shape, call.b.shape[2], call.a.window.itemsize
    panels = m // grid.rows, n // grid.columns
    parts = panels[0] // grid.part_rows, panels[1] // grid.part_columns
    for chunk in _CHUNKS:
        # The sums, two panels of each operand, and two slots of two steps.
        loaded = min(2, k // chunk) * sum(parts) + 4 * sum(panels) // mesh.pes
        taken = 4 * parts[0] * parts[1] + loaded * chunk * itemsize
        whole = k % chunk == chunk % (mesh.width * mesh.height) == chunk % _PART == 0
        if whole and taken <= mesh.scratch_bytes - _ALIGNMENT_BYTES:
            return grid._replace(chunks=(chunk,) * (k // chunk))
    return None


def launch_in_cubes(call: ProductCall, grid: CubeGrid) -> None:
    """Compute the only product of a call on a grid that divides it."""
    left, right = _shape(call.a, 1), _shape(call.b, 2)
    plan = cube_plan(cube_mesh(), left, right, grid)
    used = call.used
    operands = list[CubeOperand]()
    for window, chosen in ((call.a, plan.a), (call.b, plan.b)):
        copies = _copies(call, window, chosen)
        if copies is not None:
            used.append(copies.window)
        operands.append(
            CubeOperand(
                source=window.pointer,
                copies=None if copies is None else copies.pointer,
                loads=chosen.loads,
            )
        )
    row = None if call.bias is None else call.bias.pointer
    result = CubeResult(call.out.pointer, max(call.out.strides[1], call.out.shape[2]), row)
    arguments = (PerPe(plan.tasks), plan.steps, *operands, result)
    launch_on("matmul", multiply_in_cubes, arguments, used, sorted(plan.tasks), local=True)


def _has_rows(x: StridedWindow) -> bool:
    """Whether a matrix or its transpose is row-major, with any pitch."""
    (_, rows, columns), (_, down, across) = x.shape, x.strides
    return (across == 1 and down >= columns) or (down == 1 and across >= rows)


def _copies(call: ProductCall, operand: StridedWindow, plan: OperandPlan) -> StridedWindow | None:
    return call.new(plan.elements, operand.window.dtype) if plan.elements else None


def _shape(x: StridedWindow, free: int) -> CubeOperandShape:
    in_rows = x.strides[3 - free] == 1
    shards = [each.spec for each in x.window.shards if each.spec.nbytes]
    return CubeOperandShape(
        length=x.shape[free],
        pitch=x.strides[free if in_rows else 3 - free],
        in_rows=in_rows,
        ends=tuple((each.offset_bytes + each.nbytes) // x.window.itemsize for each in shards),
        cubes=tuple(each.cube for each in shards),
    )
