"""The choice between the plans of a product of two matrices, by their estimated times.

The estimates are sums of bounds and of latencies that were measured on the default machine. They
choose between plans, and nothing else depends on them.
"""

from functools import lru_cache
from math import inf
from typing import Literal, NamedTuple

from runtime.device.products.cube_plan import CubeGrid
from runtime.device.products.gather_plan import GatherMachine, GatherOperand, gather_plan
from runtime.device.products.product_plan import (
    ACCUMULATOR_BYTES,
    BatchGrid,
    ProductSize,
    batch_grid,
)

_LATENCY_NS, _FAR_GBS = 300.0, 12.0
"""The latency of a product in blocks, and the bandwidth of a PE that loads its panels one after
another from other cubes: a packet of 4 KiB for each round trip.
"""
_FEW_CUBES = 2
"""The cubes between which loads do not delay each other."""
_LAUNCH_NS = 1000.0
"""The time of a launch that adds parts of sums."""
_LEAST_DEPTH = 32
"""The least depth of a part of the sums."""
_LEAST_STEP_NS, _STEPS_BEHIND, _SLOTS_ON_A_LINK = 900.0, 4, 1.3
"""The time of a step of the copies in a grid of cubes without its bytes, the steps behind the last
chunk, and the slots of a step that pass a link.
"""


class ProductMatrices(NamedTuple):
    """The product of two matrices: its size, both operands as they are in memory (None if neither
    rows nor columns have their elements side by side), the shares of each, and the grid of cubes if
    one divides it. `has_bias`: a row is added.
    """

    machine: GatherMachine
    size: ProductSize
    a: GatherOperand | None
    b: GatherOperand | None
    shares: tuple[int, int]
    grid: CubeGrid | None
    has_bias: bool


class ProductChoice(NamedTuple):
    """The plan: blocks, of `parts` parts of the sums; a copy in each cube of `a` (`own_is_b`) or of
    `b`; or a grid of cubes. `time_ns` is its estimated time.
    """

    time_ns: float
    kind: Literal["blocks", "copies", "grid"]
    parts: int = 1
    own_is_b: bool = False


@lru_cache(maxsize=4096)
def product_choice(product: ProductMatrices) -> ProductChoice:
    """The plan with the least estimated time."""
    machine, size, grid = product.machine, product.size, product.grid
    choices = [
        ProductChoice(_blocks_ns(product, parts), "blocks", parts) for parts in _parts(product)
    ]
    if product.a is not None and product.b is not None:
        for own, gathered, own_is_b in (
            (product.b, product.a, True),
            (product.a, product.b, False),
        ):
            depth = size.k, size.itemsize
            plan = gather_plan(machine, own, gathered, depth, own_is_b=own_is_b)
            time_ns = inf if plan is None else plan.time_ns
            choices.append(ProductChoice(time_ns, "copies", own_is_b=own_is_b))
    if grid is not None:
        choices.append(ProductChoice(_grid_ns(product, grid), "grid"))
    return min(choices)


def _parts(product: ProductMatrices) -> list[int]:
    """The numbers of equal parts of the sums that are compared."""
    depth, cubes = product.size.k, product.machine.mesh.width * product.machine.mesh.height
    candidates = sorted({*(1 << power for power in range(1, 7)), cubes})
    return [
        1,
        *(each for each in candidates if depth % each == 0 and depth // each >= _LEAST_DEPTH),
    ]


def _blocks(product: ProductMatrices, parts: int) -> BatchGrid:
    size, shares = product.size, product.shares
    slices = max(1, shares[0] // parts), max(1, shares[1] // parts)
    return batch_grid(parts, size._replace(k=size.k // parts), product.machine.rates, slices)


def _blocks_ns(product: ProductMatrices, parts: int) -> float:
    """The latency of the loads, the bytes that a PE loads from other cubes, the stores of a block,
    and the bounds of the PEs; for parts of the sums also a launch that adds them.
    """
    machine, size, blocks = product.machine, product.size, _blocks(product, parts)
    mesh = machine.mesh
    row, column = -(-size.m // blocks.rows), -(-size.n // blocks.columns)
    cubes = min(mesh.width * mesh.height, -(-parts * blocks.rows * blocks.columns // mesh.pes))
    far = sum(
        length * _far_share(product, operand, parts, cubes)
        for length, operand in ((row, product.a), (column, product.b))
    )
    loaded = far * (size.k // parts) * size.itemsize
    time_ns = blocks.time_ns + _LATENCY_NS + loaded / _FAR_GBS
    if parts > 1:
        # A PE loads a piece of each part, and the parts pass the links between cubes.
        sums = parts * size.m * size.n * ACCUMULATOR_BYTES
        time_ns += _LAUNCH_NS + machine.far_ns(parts) + sums / machine.link_gbs
        return time_ns + (_LAUNCH_NS if product.has_bias else 0)
    row_bytes = size.n * size.itemsize
    # Tiles of the result are stored one by one.
    tiles = -(-column // machine.rates.tile.n)
    return time_ns + machine.stored_ns(row, row_bytes, size.m * row_bytes) * tiles


def _far_share(
    product: ProductMatrices, operand: GatherOperand | None, parts: int, cubes: int
) -> float:
    """The share of an operand in other cubes than that whose PE loads it, in the middle over the
    PEs of `cubes` cubes; none of parts of the depth that lie in the cubes which multiply them.
    Between many cubes the loads delay each other, as if all of it were far.
    """
    mesh, rates = product.machine.mesh, product.machine.rates
    if operand is None:
        return 1.0
    is_apart = not operand.in_rows and len(operand.holders) >= rates.pes
    if is_apart and parts % (mesh.width * mesh.height) == 0:
        return 0.0
    holding = len({holder // mesh.pes for holder in operand.holders})
    spread = max(cubes, holding)
    return 1 - 1 / spread if spread <= _FEW_CUBES else 1.0


def _grid_ns(product: ProductMatrices, grid: CubeGrid) -> float:
    """Steps of the copies, each with a barrier of all cubes or the bytes of the slots of both
    panels on a link.
    """
    size = product.size
    panels = size.m // grid.rows + size.n // grid.columns
    link_gbs = product.machine.link_gbs
    step_ns = _SLOTS_ON_A_LINK * panels * grid.chunks[0] * size.itemsize / link_gbs
    return (len(grid.chunks) + _STEPS_BEHIND) * max(_LEAST_STEP_NS, step_ns)
