"""Divides independent products of a launch over PEs. What blocks on a PE share, it loads once.

A *region* is a block of a matrix in memory. Each product is cut into the same number of blocks, and
the blocks go, the largest first, to the PE which is then complete first: to one that has a region
already, only the other one is to be loaded. Several numbers of blocks and of PEs are compared by
their estimated time, the sum of two bounds: the loads, the stores and the steps of a PE, and the
loads of all PEs from the slice that holds the beginning of each operand or over the links between
cubes. So few PEs near the operands are better than many, which load the same regions from the same
slices.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from runtime.device.products.gather_plan import GatherMachine
from runtime.device.products.product_plan import ProductSize, divided, grid, share_of_channels
from runtime.model.placement import Span
from runtime.model.tiles import TileSize

_MOST_BYTES = 1 << 17
"""The bytes that a PE loads, and those that it stores: with more, the loads take longer than a
launch, and `multiply` overlaps them with the steps.
"""
_MEETING = 2
"""The factor of the loads that meet at a slice, measured on the default machine."""
_LAUNCH_NS, _EQUAL = 800.0, 1.08
"""The time of a launch besides. Plans with which a launch takes less than this factor of the least
time are equal: that which loads least is taken.
"""
_FEW_CUBES = 2
"""The cubes that may hold an operand: from more, the loads of all PEs delay each other, and the
plans of single products are better.
"""
_BLOCKS_OF_A_PE = 8
"""The most blocks of a PE in the middle."""


class JoinedOperand(NamedTuple):
    """An operand in memory: the number of its matrix, whether its free axis is that of the rows
    there, their distance in elements, and the slices that hold it.
    """

    matrix: int
    in_rows: bool
    pitch: int
    slices: int


class JoinedFactors(NamedTuple):
    """The operands of a product, and the length of its sums."""

    a: JoinedOperand
    b: JoinedOperand
    depth: int


class JoinedProduct(NamedTuple):
    """One of the products, or a sum of several, whose depths `size` has together; the bias is a row
    in memory. With an epilogue it has blocks `beside` it, several results, and `element_ns`, the
    time of the vector engine for an element; a block has all rows if they are summed.
    """

    size: ProductSize
    factors: tuple[JoinedFactors, ...]
    bias: JoinedOperand | None
    beside: int = 0
    results: int = 1
    element_ns: float = 0.0
    sums_rows: bool = False


class MatrixRegion(NamedTuple):
    """Rows and columns of a matrix in memory."""

    matrix: int
    rows: Span
    columns: Span

    def contains(self, other: "MatrixRegion") -> bool:
        """Whether all elements of another region are in this one."""
        return (
            self.matrix == other.matrix
            and self.rows[0] <= other.rows[0]
            and other.rows[1] <= self.rows[1]
            and self.columns[0] <= other.columns[0]
            and other.columns[1] <= self.columns[1]
        )

    @property
    def elements(self) -> int:
        """The number of elements."""
        (top, bottom), (left, right) = self.rows, self.columns
        return (bottom - top) * (right - left)


class JoinedBlock(NamedTuple):
    """A block of the result of product `number`, and the regions that it reads: of `a` and `b` of
    each factor, and of the bias if there is one.
    """

    number: int
    rows: Span
    columns: Span
    regions: tuple[MatrixRegion, ...]

    @property
    def elements(self) -> int:
        """The number of elements of the block."""
        (top, bottom), (left, right) = self.rows, self.columns
        return (bottom - top) * (right - left)


class PeBlocks(NamedTuple):
    """The blocks of a PE, and the regions that it loads for them."""

    blocks: tuple[JoinedBlock, ...]
    regions: tuple[MatrixRegion, ...]


@dataclass
class _PeShare:
    blocks: list[JoinedBlock] = field(default_factory=list["JoinedBlock"])
    regions: list[MatrixRegion] = field(default_factory=list["MatrixRegion"])
    loaded_bytes: int = 0
    result_bytes: int = 0
    time_ns: float = 0.0


@lru_cache(maxsize=1024)
def joined_plan(
    products: tuple[JoinedProduct, ...], machine: GatherMachine
) -> tuple[PeBlocks, ...] | None:
    """The blocks of the first PEs of the SIP; None if the regions of a PE are too large, or if an
    operand lies in many cubes.
    """
    if _holding_cubes(products, machine) > _FEW_CUBES:
        return None
    plans = list[tuple[float, int, tuple[PeBlocks, ...]]]()
    for blocks in _divisions(products, machine):
        for pes in _numbers_of_pes(len(blocks), machine):
            shares = _dealt(products, blocks, pes, machine)
            if any(max(each.loaded_bytes, each.result_bytes) > _MOST_BYTES for each in shares):
                continue
            plan = tuple(PeBlocks(tuple(each.blocks), tuple(each.regions)) for each in shares)
            loaded = sum(each.loaded_bytes for each in shares)
            plans.append((_time_ns(products, shares, machine), loaded, plan))
    least_ns = min((time_ns for time_ns, _, _ in plans), default=0.0)
    most_ns = (least_ns + _LAUNCH_NS) * _EQUAL - _LAUNCH_NS
    choices = [(loaded, time_ns, plan) for time_ns, loaded, plan in plans if time_ns <= most_ns]
    return min(choices)[-1] if choices else None


def _divisions(
    products: Sequence[JoinedProduct], machine: GatherMachine
) -> Iterator[list[JoinedBlock]]:
    """All blocks of the products, each of which has at most a number of blocks."""
    rates, most = machine.rates, 1
    while most <= rates.pes:
        blocks = [
            block
            for number, product in enumerate(products)
            for block in _blocks(number, product, most, machine)
        ]
        itemsize = products[0].size.itemsize
        yield sorted(blocks, key=lambda block: -_elements(block.regions) * itemsize)
        most *= 2


def _blocks(
    number: int, product: JoinedProduct, most: int, machine: GatherMachine
) -> Iterator[JoinedBlock]:
    size, tile = product.size, machine.rates.tile
    slices = (
        min(a.slices for a, _, _ in product.factors),
        min(b.slices for _, b, _ in product.factors),
    )
    across, along = grid(size, machine.rates._replace(pes=most), slices)
    if product.sums_rows:
        across, along = 1, min(most, -(-size.n // tile.n))
    for rows in divided(size.m, across, tile.m):
        for columns in divided(size.n, along, tile.n):
            regions = list[MatrixRegion]()
            for a, b, depth in product.factors:
                regions += _region(a, rows, depth), _region(b, columns, depth)
            if product.bias is not None:
                regions.append(MatrixRegion(product.bias.matrix, (0, 1), columns))
            yield JoinedBlock(number, rows, columns, tuple(regions))


def _region(operand: JoinedOperand, span: Span, depth: int) -> MatrixRegion:
    rows, columns = (span, (0, depth)) if operand.in_rows else ((0, depth), span)
    return MatrixRegion(operand.matrix, rows, columns)


def _elements(regions: Sequence[MatrixRegion]) -> int:
    return sum(each.elements for each in regions)


def _numbers_of_pes(blocks: int, machine: GatherMachine) -> Iterator[int]:
    number = 1
    while number < min(2 * blocks, machine.rates.pes + 1):
        if number * _BLOCKS_OF_A_PE >= blocks:
            yield min(number, blocks)
        number *= 2


def _dealt(
    products: Sequence[JoinedProduct],
    blocks: Sequence[JoinedBlock],
    pes: int,
    machine: GatherMachine,
) -> list[_PeShare]:
    """The blocks in their order, each on the PE which is complete first with it."""
    rates, shares = machine.rates, [_PeShare() for _ in range(pes)]
    operands = _operands(products)
    for block in blocks:
        own = products[block.number]
        size, block_bytes = own.size, block.elements * own.size.itemsize
        own_ns = _steps(block, size.k, rates.tile) * rates.step_ns
        own_ns += block_bytes * (own.beside + own.results) / rates.slice_gbs
        own_ns += block.elements * own.element_ns
        best: tuple[float, int, _PeShare, list[MatrixRegion]] | None = None
        for share in shares:
            missing = _missing(share.regions, block.regions)
            time_ns = share.time_ns + own_ns
            time_ns += sum(_load_ns(each, operands, size.itemsize, machine) for each in missing)
            elements = _elements(missing)
            if best is None or (time_ns, elements) < best[:2]:
                best = time_ns, elements, share, missing
            if not share.blocks:
                # The PEs behind it have no block either.
                break
        assert best is not None, "there is a PE"
        time_ns, elements, share, missing = best
        share.time_ns = time_ns
        share.loaded_bytes += elements * size.itemsize + own.beside * block_bytes
        share.result_bytes += own.results * block_bytes
        share.blocks.append(block)
        share.regions += missing
    return [each for each in shares if each.blocks]


def _steps(block: JoinedBlock, depth: int, tile: TileSize) -> int:
    (top, bottom), (left, right) = block.rows, block.columns
    return -(-(bottom - top) // tile.m) * -(-(right - left) // tile.n) * -(-depth // tile.k)


def _missing(present: Sequence[MatrixRegion], needed: Sequence[MatrixRegion]) -> list[MatrixRegion]:
    missing = list[MatrixRegion]()
    for region in needed:
        if not any(each.contains(region) for each in (*present, *missing)):
            missing.append(region)
    return missing


def _operands(products: Sequence[JoinedProduct]) -> dict[int, JoinedOperand]:
    """An operand of each matrix."""
    return {
        operand.matrix: operand
        for product in products
        for operand in (*(each for a, b, _ in product.factors for each in (a, b)), product.bias)
        if operand is not None
    }


def _load_ns(
    region: MatrixRegion,
    operands: Mapping[int, JoinedOperand],
    itemsize: int,
    machine: GatherMachine,
) -> float:
    """The time of a region at the channels of a slice on which its rows lie."""
    (left, right), pitch = region.columns, operands[region.matrix].pitch
    share = share_of_channels((right - left) * itemsize, pitch * itemsize, machine.round_bytes)
    return region.elements * itemsize / machine.rates.slice_gbs / share


def _holding_cubes(products: Sequence[JoinedProduct], machine: GatherMachine) -> int:
    return -(-max(each.slices for each in _operands(products).values()) // machine.mesh.pes)


def _time_ns(
    products: Sequence[JoinedProduct], shares: Sequence[_PeShare], machine: GatherMachine
) -> float:
    operands = _operands(products)
    itemsize, pes_of_cube = products[0].size.itemsize, machine.mesh.pes
    holding = _holding_cubes(products, machine)
    hottest_ns = far_bytes = 0.0
    for number, share in enumerate(shares):
        hottest_ns += sum(
            _load_ns(each, operands, itemsize, machine) / operands[each.matrix].slices
            for each in share.regions
        )
        is_near = number // pes_of_cube < holding
        far_bytes += share.loaded_bytes * (1 - 1 / holding if is_near else 1)
    shared_ns = max(_MEETING * hottest_ns, far_bytes / machine.link_gbs)
    return max(each.time_ns for each in shares) + shared_ns
