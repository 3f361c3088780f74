"""The choice between the plans of a product, or of a batch of equal ones, by their estimated times.

The estimates are sums of bounds and of latencies that were measured on the default machine. They
choose between plans, and nothing else depends on them.
"""

from functools import lru_cache
from math import inf
from typing import Literal, NamedTuple

from runtime.device.products.cube_plan import CubeGrid
from runtime.device.products.gather_machine import GatherMachine, GatherOperand
from runtime.device.products.gather_plan import gather_plan
from runtime.device.products.product_plan import (
    ACCUMULATOR_BYTES,
    BatchGrid,
    OperandSize,
    PeMemory,
    ProductDepth,
    ProductSize,
    batch_grid,
    block_ns,
)

_LATENCY_NS, _FAR_GBS = 300.0, 10.0
"""The latency of a product in blocks, and the bandwidth of each PE if all of them load panels from
other cubes.
"""
_FEW_CUBES = 2
"""The cubes between which loads do not delay each other."""
_LAUNCH_NS, _BEHIND_NS = 1000.0, 300.0
"""The time of a launch that adds parts of sums, and of one behind another one beside its product.
"""
_OVERLAP, _LITTLE_OVERLAP = 0.7, 0.9
"""The time of copies beside the sum of their bounds and latencies, in the middle of many products;
and that of batches, and where own panels have the depth in memory rows, a request for each slice.
"""
_SUMS_ON_A_LINK = 0.5
"""The part of all parts of the sums that passes a link, as they are stored and added."""
_LEAST_DEPTH = 32
"""The least depth of a part of the sums."""
_LEAST_STEP_NS, _STEPS_BEHIND, _SLOTS_ON_A_LINK = 900.0, 4, 1.3
"""The time of a step of the copies in a grid of cubes without its bytes, the steps behind the last
chunk, and the slots of a step that pass a link.
"""


class ProductMatrices(NamedTuple):
    """Products of matrices: their number and the size of one, both operands as they are in memory
    (None if neither rows nor columns have their elements side by side), the shares of each, the
    grid of cubes if one divides it, and the most parts into which the sums may be cut. Those of
    sums in order have no copies beside panels with the depth in memory rows.
    """

    machine: GatherMachine
    batch: int
    size: ProductSize
    a: GatherOperand | None
    b: GatherOperand | None
    shares: tuple[int, int]
    grid: CubeGrid | None
    most_parts: int
    in_order: bool = False

    def first(self) -> "ProductMatrices":
        """The first product of a batch."""
        a, b = (None if each is None else each.first_of(self.batch) for each in (self.a, self.b))
        of_a, of_b = (max(1, each // self.batch) for each in self.shares)
        return self._replace(batch=1, a=a, b=b, shares=(of_a, of_b))


class ProductChoice(NamedTuple):
    """The plan: blocks, of `parts` parts of the sums; a copy in each cube of `a` (`own_is_b`) or of
    `b`; a grid of cubes; or each product of a batch for itself. `time_ns` is its estimated time.
    """

    time_ns: float
    kind: Literal["blocks", "copies", "each", "grid"]
    parts: int = 1
    own_is_b: bool = False


@lru_cache(maxsize=4096)
def product_choice(product: ProductMatrices) -> ProductChoice:
    """The plan with the least estimated time."""
    machine, size, grid = product.machine, product.size, product.grid
    choices = [
        ProductChoice(_blocks_ns(product, parts), "blocks", parts) for parts in _parts(product)
    ]
    if product.a is not None and product.b is not None and machine.rates.pes > 1:
        for own, gathered, own_is_b in (
            (product.b, product.a, True),
            (product.a, product.b, False),
        ):
            if product.in_order and not own.in_rows:
                # Of large products these estimates are too short by up to 3 times.
                continue
            depth = size.k, size.itemsize
            plan = gather_plan(
                machine, own, gathered, depth, own_is_b=own_is_b, batch=product.batch
            )
            overlap = _OVERLAP if own.in_rows and product.batch == 1 else _LITTLE_OVERLAP
            time_ns = inf if plan is None else plan.time_ns * overlap
            choices.append(ProductChoice(time_ns, "copies", own_is_b=own_is_b))
    if product.batch > 1:
        one = product_choice(product.first())
        choices.append(ProductChoice(product.batch * (one.time_ns + _BEHIND_NS), "each"))
    elif grid is not None:
        choices.append(ProductChoice(_grid_ns(product, grid) * _OVERLAP, "grid"))
    return min(choices)


def _parts(product: ProductMatrices) -> list[int]:
    """The numbers of equal parts of the sums that are compared."""
    depth, mesh = product.size.k, product.machine.mesh
    cubes = mesh.width * mesh.height
    candidates = sorted({*(1 << power for power in range(1, 7)), cubes})
    return [
        1,
        *(
            each
            for each in candidates
            if each <= product.most_parts and depth % each == 0 and depth // each >= _LEAST_DEPTH
        ),
    ]


def _blocks(product: ProductMatrices, parts: int) -> BatchGrid:
    size, count = product.size, product.batch * parts
    slices = max(1, product.shares[0] // count), max(1, product.shares[1] // count)
    return batch_grid(count, size._replace(k=size.k // parts), product.machine.rates, slices)


def _blocks_ns(product: ProductMatrices, parts: int) -> float:
    """The latency of the loads, the bytes that a PE loads from other cubes, the stores of a block,
    and the bounds of the PEs; for parts of the sums also a launch that adds them.
    """
    machine, size, blocks = product.machine, product.size, _blocks(product, parts)
    mesh, count = machine.mesh, product.batch * parts
    row, column = -(-size.m // blocks.rows), -(-size.n // blocks.columns)
    cells = count * blocks.rows * blocks.columns
    cubes = min(mesh.width * mesh.height, -(-cells // mesh.pes))
    turns = -(-cells // machine.rates.pes)
    far = [_far_share(product, operand, parts, cubes) for operand in (product.a, product.b)]
    # Rows in many cubes, and parts of the sums beside each other, lie on all channels.
    is_spread = [parts > 1 or each == 1 for each in far]
    depth, tile = size.k // parts, machine.rates.tile
    loaded = (row * far[0] + column * far[1]) * depth * size.itemsize * turns
    own_ns = block_ns(
        _operand_size(product.a, row, tile.m, is_spread=is_spread[0]),
        _operand_size(product.b, column, tile.n, is_spread=is_spread[1]),
        ProductDepth(depth, tile.k, size.itemsize),
        machine.rates.step_ns,
        PeMemory(mesh.scratch_bytes, machine.round_bytes, machine.rates.slice_gbs),
    )
    # Most panels are multiplied behind their loads, not beside them.
    steps = -(-row // tile.m) * -(-column // tile.n) * -(-depth // tile.k)
    loads_ns = (row + column) * depth * size.itemsize / machine.rates.slice_gbs
    own_ns += min(steps * machine.rates.step_ns, loads_ns)
    time_ns = max(blocks.time_ns, turns * own_ns) + _LATENCY_NS * turns
    # A panel with the depth in memory rows is a request for each slice.
    requests = sum(
        operand.pieces(depth, length) * turns
        for length, operand in ((row, product.a), (column, product.b))
        if operand is not None and not operand.in_rows
    )
    # Few PEs have the links for themselves.
    far_gbs = min(_FAR_GBS * machine.rates.pes * turns / cells, machine.link_gbs)
    time_ns += loaded / far_gbs + machine.far_ns(requests)
    time_ns = max(time_ns, _burst_ns(product, row, column, cells * depth))
    results, row_bytes = product.batch * size.m * size.n, size.n * size.itemsize
    if parts > 1:
        # A PE loads a piece of each part, and the parts pass the links between cubes.
        sums, row_bytes = parts * results * ACCUMULATOR_BYTES, size.n * ACCUMULATOR_BYTES
        time_ns += machine.stored_ns(row, row_bytes, sums) * turns
        time_ns += sums * _SUMS_ON_A_LINK / machine.link_gbs
        return time_ns + _LAUNCH_NS + machine.far_ns(parts)
    # Tiles of the result are stored one by one, each beside half of its predecessor.
    stores = (1 + -(-column // tile.n)) / 2 * turns
    return time_ns + machine.stored_ns(row, row_bytes, results * size.itemsize) * stores


def _operand_size(
    operand: GatherOperand | None, length: int, unit: int, *, is_spread: bool
) -> OperandSize:
    pitch = 0 if operand is None or operand.in_rows or is_spread else operand.pitch
    return OperandSize((0, length), (length,), unit, pitch)


def _burst_ns(product: ProductMatrices, row: int, column: int, rows: int) -> float:
    """The time of the slices for `rows` rows of the depth in all blocks: those of an operand with
    the depth in memory rows take a burst at least.
    """
    machine, itemsize = product.machine, product.size.itemsize
    loads = [
        rows * max(length * itemsize, machine.burst_bytes) / shares
        for operand, length, shares in zip(
            (product.a, product.b), (row, column), product.shares, strict=True
        )
        if operand is not None and not operand.in_rows
    ]
    return max(loads, default=0.0) / machine.rates.slice_gbs


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
    if is_apart and product.batch * parts % (mesh.width * mesh.height) == 0:
        return 0.0
    holding = len({holder // mesh.pes for holder in operand.holders})
    spread = max(cubes, holding)
    if holding >= cubes and operand.is_stacked(product.batch):
        # Each matrix lies in the cubes whose PEs multiply it.
        spread = -(-holding // product.batch)
        pieces = product.batch * parts
        if not operand.in_rows and pieces % holding and holding % pieces:
            # A piece begins in one cube and ends in the next.
            return min(1.0, holding / pieces) / 2
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
