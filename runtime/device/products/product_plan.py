"""Divides a matrix product over PEs and over the scratch of each.

PEs: blocks of whole tiles of the result, in the grid with the least estimated time. The estimate is
the largest of three lower bounds, as in a roofline: the steps of the GEMM engine, the bytes that a
PE loads at the bandwidth of a slice, and the bytes that all PEs load from the slices that hold an
operand.

Scratch: panels of one operand are *held*, panels of the other one *move* past them through a ring
of slots. Each panel is loaded once for a group of held panels, and its products run while the next
one is loaded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import gcd
from typing import NamedTuple

from runtime.device.kernels.products import ProductOperand, ScratchPlan
from runtime.model.placement import Span
from runtime.model.tiles import TileSize

ACCUMULATOR_BYTES = 4
"""The size of a sum: float32 or int32."""


class PeRates(NamedTuple):
    """The PEs of a SIP, the engine's tile and its time in ns, and the bandwidth of a slice in
    GB/s.
    """

    pes: int
    tile: TileSize
    step_ns: float
    slice_gbs: float


class ProductSize(NamedTuple):
    """(m, k) times (k, n), and the size of an element of the operands in bytes."""

    m: int
    k: int
    n: int
    itemsize: int


def grid(size: ProductSize, rates: PeRates, slices: tuple[int, int]) -> tuple[int, int]:
    """The numbers of row blocks and of column blocks, one block for each PE.

    `slices` are the numbers of HBM slices that hold `a` and `b`. Of equal estimates, the grid with
    the fewest PEs, then that which loads least.
    """
    row_tiles, column_tiles = _ceil(size.m, rates.tile.m), _ceil(size.n, rates.tile.n)
    shapes = [
        (rows, min(column_tiles, rates.pes // rows))
        for rows in range(1, min(row_tiles, rates.pes) + 1)
    ]
    # A grid with fewer columns reads less of `a`, which matters where one slice holds it.
    shapes += [(1, columns) for columns in range(1, min(column_tiles, rates.pes) + 1)]
    return min(shapes, key=lambda shape: grid_cost(size, rates, slices, shape))


def grid_cost(
    size: ProductSize, rates: PeRates, slices: tuple[int, int], shape: tuple[int, int]
) -> tuple[float, int, int]:
    """The estimated time in ns of a grid of blocks, its PEs, and the bytes that a PE loads."""
    rows = _ceil(_ceil(size.m, rates.tile.m), shape[0])
    columns = _ceil(_ceil(size.n, rates.tile.n), shape[1])
    compute_ns = rows * columns * _ceil(size.k, rates.tile.k) * rates.step_ns
    row_bytes = size.k * size.itemsize
    own = (min(rows * rates.tile.m, size.m) + min(columns * rates.tile.n, size.n)) * row_bytes
    of_a = size.m * row_bytes * shape[1] / slices[0]
    of_b = size.n * row_bytes * shape[0] / slices[1]
    load_ns = max(own, of_a, of_b) / rates.slice_gbs
    return max(compute_ns, load_ns), shape[0] * shape[1], own


class BatchGrid(NamedTuple):
    """The blocks of each result, rows times columns, and the estimated time of the launch."""

    rows: int
    columns: int
    time_ns: float


@lru_cache(maxsize=1024)
def batch_grid(count: int, size: ProductSize, rates: PeRates, slices: tuple[int, int]) -> BatchGrid:
    """The blocks of each of `count` equal products, of which the operands lie on `slices`."""
    candidates: list[tuple[float, int, BatchGrid]] = []
    for pes in {max(1, rates.pes // count), *(1 << power for power in range(11))}:
        if pes <= rates.pes:
            own = rates._replace(pes=pes)
            rows, columns = grid(size, own, slices)
            block_ns = grid_cost(size, own, slices, (rows, columns))[0]
            turns = -(-count * rows * columns // rates.pes)
            time_ns = turns * block_ns
            candidates.append((time_ns, rows * columns, BatchGrid(rows, columns, time_ns)))
    return min(candidates)[2]


def divided(length: int, parts: int, unit: int) -> list[Span]:
    """`length` in at most `parts` spans of whole units, as equal as possible; the last one has the
    remainder.
    """
    units = _ceil(length, unit)
    ends = [min(units * (part + 1) // parts * unit, length) for part in range(parts)]
    return [(start, stop) for start, stop in zip([0, *ends], ends, strict=False) if start < stop]


@dataclass(frozen=True)
class OperandSize:
    """One operand in a PE's block.

    `span` is the range of the free axis, `cuts` are the ends of its pieces, `unit` is the length of
    a tile. `pitch` is the distance of its rows in elements where the free axis is that of the
    columns, else 0: a panel is contiguous then.
    """

    span: Span
    cuts: tuple[int, ...]
    unit: int
    pitch: int

    @property
    def length(self) -> int:
        """Rows or columns of the result."""
        return self.span[1] - self.span[0]


def operand_size(operand: ProductOperand, span: Span, unit: int) -> OperandSize:
    """The part of an operand in a block on a PE, for `scratch_plan`."""
    return OperandSize(
        span=span,
        cuts=tuple(piece.span[1] for piece in operand.pieces),
        unit=unit,
        pitch=0 if operand.stored_in_rows else max(piece.pitch for piece in operand.pieces),
    )


class PeMemory(NamedTuple):
    """The scratch of a kernel, the bytes of one round over all channels of a slice, and its
    bandwidth.
    """

    scratch_bytes: int
    round_bytes: int
    slice_gbs: float


class ProductDepth(NamedTuple):
    """The length of the sums, that of a tile, and bytes of an operand's element."""

    length: int
    unit: int
    itemsize: int


# The products of a training step have the sizes of the step before.
@lru_cache(maxsize=4096)
def scratch_plan(
    a: OperandSize, b: OperandSize, depth: ProductDepth, step_ns: float, memory: PeMemory
) -> ScratchPlan:
    """The panels of a block with the least estimated time.

    The estimate is the larger one of the steps of the engine and of the loads, and before each
    group of held panels the time until its first product can begin. A load gets the part of the
    bandwidth which belongs to the channels that its rows occupy.
    """
    best = _best_panels(a, b, depth, step_ns, memory)
    panels = _spans(best.held.span, best.held_length, best.held.cuts)
    groups = [panels[first : first + best.count] for first in range(0, len(panels), best.count)]
    return ScratchPlan(
        held="a" if best.held_is_a else "b",
        groups=tuple(tuple(group) for group in groups),
        moving=tuple(_spans(best.moving.span, best.moving_length, best.moving.cuts)),
        depths=tuple(_spans((0, depth.length), best.depth, ())),
        slots=best.slots,
    )


@lru_cache(maxsize=4096)
def block_ns(
    a: OperandSize, b: OperandSize, depth: ProductDepth, step_ns: float, memory: PeMemory
) -> float:
    """The estimated time of a block whose operands are in the slice of its PE."""
    return _best_panels(a, b, depth, step_ns, memory).time_ns(depth, step_ns, memory)


def _best_panels(
    a: OperandSize, b: OperandSize, depth: ProductDepth, step_ns: float, memory: PeMemory
) -> "_PanelChoice":
    choices = [
        choice
        for held, moving, name in ((a, b, "a"), (b, a, "b"))
        for choice in _choices(held, moving, name == "a", depth, memory)
    ]
    return min(choices, key=lambda choice: choice.time_ns(depth, step_ns, memory))


@dataclass(frozen=True)
class _PanelChoice:
    """The lengths of panels, the panels of a group, the length of a part of the depth, the slots of
    the ring.
    """

    held: OperandSize
    moving: OperandSize
    held_is_a: bool
    held_length: int
    count: int
    moving_length: int
    depth: int
    slots: int

    def time_ns(self, depth: ProductDepth, step_ns: float, memory: PeMemory) -> float:
        """The estimated time of the block."""
        held, moving = self.held, self.moving
        tiles = _ceil(held.length, held.unit) * _ceil(moving.length, moving.unit)
        steps_ns = tiles * _ceil(depth.length, depth.unit) * step_ns
        groups = _ceil(held.length, self.held_length * self.count)
        parts = _ceil(depth.length, self.depth)
        loads_ns = wait_ns = 0.0
        for operand, length, times in (
            (held, self.held_length, 1),
            (moving, self.moving_length, groups),
        ):
            row_ns = depth.length * depth.itemsize / memory.slice_gbs
            row_ns /= _share_of_channels(operand, length, depth.itemsize, memory)
            loads_ns += operand.length * row_ns * times
            # Once for each group and part of the depth.
            wait_ns += min(length, operand.length) * row_ns * groups
        # Between two parts of the depth, the sums are written and read.
        sums = 2 * (parts - 1) * held.length * moving.length * ACCUMULATOR_BYTES
        loads_ns += sums / memory.slice_gbs
        return wait_ns + max(steps_ns, loads_ns)


def _choices(
    held: OperandSize,
    moving: OperandSize,
    held_is_a: bool,  # noqa: FBT001
    depth: ProductDepth,
    memory: PeMemory,
) -> Iterator[_PanelChoice]:
    # A part for the gaps of alignment.
    usable = memory.scratch_bytes - memory.scratch_bytes // 64
    # Seven panels of the least length fit.
    widest = max(held.unit, moving.unit) * depth.itemsize
    deepest = max(usable // (7 * widest) // depth.unit, 1) * depth.unit
    fewest = _ceil(depth.length, deepest)
    for parts, fraction, share in product((fewest, 2 * fewest, 4 * fewest), (1, 16, 64), (8, 32)):
        part = min(_ceil(_ceil(depth.length, parts), depth.unit) * depth.unit, depth.length)
        row_bytes = part * depth.itemsize
        # A row of bias belongs to a panel of `b`.
        per_held = row_bytes + ACCUMULATOR_BYTES
        per_moving = row_bytes + ACCUMULATOR_BYTES
        room = max(usable - 4 * moving.unit * per_moving, 0)
        if part < depth.length:
            # Beside each moving panel are the sums which its products continue.
            room = min(room, usable // 2)
        length = min(
            _panel(held, per_held, room // fraction), _ceil(held.length, held.unit) * held.unit
        )
        count = max(room // (length * per_held), 1)
        left = usable - count * length * per_held
        if part < depth.length:
            per_moving += count * length * ACCUMULATOR_BYTES
        moving_length = _panel(moving, per_moving, left // share)
        # The first panel has a slot of its own, which it keeps.
        slots = left // (moving_length * per_moving) - 1
        if slots > 0:
            yield _PanelChoice(
                held=held,
                moving=moving,
                held_is_a=held_is_a,
                held_length=length,
                count=count,
                moving_length=moving_length,
                depth=part,
                slots=slots,
            )


def _share_of_channels(operand: OperandSize, width: int, itemsize: int, memory: PeMemory) -> float:
    """The part of a slice's channels on which the rows of a panel lie."""
    if not operand.pitch:
        return 1.0
    return share_of_channels(width * itemsize, operand.pitch * itemsize, memory.round_bytes)


def share_of_channels(row_bytes: int, pitch_bytes: int, round_bytes: int) -> float:
    """The part of a slice's channels on which rows at a pitch lie, between 0 and 1.

    Rows begin at multiples of the greatest common divisor of the pitch and a round of all channels.
    """
    return min(row_bytes / gcd(pitch_bytes, round_bytes), 1.0)


def _panel(operand: OperandSize, row_bytes: int, at_most: int) -> int:
    """The length of a panel: whole tiles, as many as `at_most` bytes hold, but at least one."""
    return max(at_most // (operand.unit * row_bytes), 1) * operand.unit


def _spans(span: Span, length: int, cuts: Sequence[int]) -> list[Span]:
    """`span` in pieces of `length` that cross no cut."""
    start, stop = span
    ends = sorted({stop, *(cut for cut in cuts if start < cut < stop)})
    spans = list[Span]()
    for end in ends:
        spans += [(first, min(first + length, end)) for first in range(start, end, length)]
        start = end
    return spans


def _ceil(a: int, b: int) -> int:
    return -(-a // b)
