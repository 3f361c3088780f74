"""The bench `va-offset-verify`: reads and writes through virtual addresses at many offsets.

The shards of a tensor are consecutive in its virtual range, each at a physical address of its own.
So a part of the range may begin anywhere in a page, and may span the memories of several PEs. Each
case moves all elements of a matrix that holds the numbers 0, 1, 2 ...; the result must be equal to
what numpy makes of the same matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kernbench import BenchOutcome, Column, DPPolicy, Table, TableRow, bench, tl, torch
from kernbench.benches.flags import checked_count
from runtime.core.errors import UsageError
from runtime.language.value import Array
from runtime.model.blocked_layout import BlockedLayout

ROWS = 8
"""Rows of the matrix on each PE."""
CUTS = (1, 64, 1023, 1024, 1025, 2049)
"""The first element of each piece of a shard but the first. With 4 bytes an element and pages of
4 KiB, pieces begin inside a page, at its boundary, and one element before and after it."""
TILE_ROWS, TILE_COLUMNS = 3, 100
"""The size of a tile; it divides neither the rows nor the default number of columns of a shard."""
LABELS = (Column("case"), Column("cubes"), Column("pes"), Column("size", "B"))
METRICS = (Column("rate", "GB/s"),)


def pieces(source: tl.Pointer, target: tl.Pointer, columns: int) -> None:
    """Kernel: copy the own shard piece by piece."""
    size = ROWS * columns
    shard = _pe() * size
    for start, stop in pairwise((0, *(cut for cut in CUTS if cut < size), size)):
        _move(source + shard + start, target + shard + start, stop - start)


def read_across(source: tl.Pointer, target: tl.Pointer, columns: int) -> None:
    """Kernel: fill the own shard from its second half and the first half of the next one.

    The last PE reads its second part from the beginning of the tensor.
    """
    size = ROWS * columns
    shard, start = _pe() * size, _pe() * size + size // 2
    # The last PE reaches the end of the tensor after half a shard; the others never do.
    before_end = min(size, _pes() * size - start)
    _move(source + start, target + shard, before_end)
    _move(source, target + shard + before_end, size - before_end)


def write_across(source: tl.Pointer, target: tl.Pointer, columns: int) -> None:
    """Kernel: copy the own shard to its second half and the first half of the next one.

    The last PE writes its second part to the beginning of the tensor.
    """
    size = ROWS * columns
    shard, start = _pe() * size, _pe() * size + size // 2
    before_end = min(size, _pes() * size - start)
    _move(source + shard, target + start, before_end)
    _move(source + shard + before_end, target, size - before_end)


def read_strided(source: tl.Pointer, target: tl.Pointer, columns: int) -> None:
    """Kernel: gather a block of columns of the whole matrix; it has rows in every shard."""
    start, stop = _columns_of(_pe(), _pes(), columns)
    rows = ROWS * _pes()
    tl.store(
        target + rows * start, tl.load(source + start, (rows, stop - start), strides=(columns, 1))
    )


def write_strided(source: tl.Pointer, target: tl.Pointer, columns: int) -> None:
    """Kernel: the inverse of `read_strided`."""
    start, stop = _columns_of(_pe(), _pes(), columns)
    rows = ROWS * _pes()
    tl.store(
        target + start, tl.load(source + rows * start, (rows, stop - start)), strides=(columns, 1)
    )


def tiles(source: tl.Pointer, target: tl.Pointer, columns: int) -> None:
    """Kernel: copy the own shard from tiles, in column-major order of tiles, to rows."""
    shard = _pe() * ROWS * columns
    for left in range(0, columns, TILE_COLUMNS):
        width = min(TILE_COLUMNS, columns - left)
        for top in range(0, ROWS, TILE_ROWS):
            height = min(TILE_ROWS, ROWS - top)
            # Scratch memory is released after each tile, so that any matrix fits.
            with tl.scratch():
                # The tiles of a column of tiles are contiguous, each of them row by row.
                tile = tl.load(source + shard + left * ROWS + top * width, (height, width))
                tl.store(target + shard + top * columns + left, tile, strides=(columns, 1))


def _move(source: tl.Pointer, target: tl.Pointer, elements: int) -> None:
    if elements:
        with tl.scratch():
            tl.store(target, tl.load(source, elements))


def _pe() -> int:
    return tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)


def _pes() -> int:
    return tl.num_programs(0) * tl.num_programs(1)


def _columns_of(pe: int, pes: int, columns: int) -> tuple[int, int]:
    return pe * columns // pes, (pe + 1) * columns // pes


@dataclass(frozen=True)
class AccessCase:
    """A kernel that moves a matrix, and `expected(matrix, pes)`, the matrix that it must give."""

    name: str
    kernel: Callable[[tl.Pointer, tl.Pointer, int], None]
    expected: Callable[[Array, int], Array]
    layout: BlockedLayout | None = None


def _gathered(matrix: Array, pes: int) -> Array:
    shares = (_columns_of(pe, pes, matrix.shape[1]) for pe in range(pes))
    return np.concatenate([matrix[:, start:stop].reshape(-1) for start, stop in shares]).reshape(
        matrix.shape
    )


def _scattered(matrix: Array, pes: int) -> Array:
    # Gathering the numbers of all elements gives the permutation; scattering is its inverse.
    numbers = np.empty(matrix.shape, np.int64)
    numbers.reshape(-1)[:] = range(matrix.size)
    result = np.empty_like(matrix)
    result.reshape(-1)[_gathered(numbers, pes).reshape(-1)] = matrix.reshape(-1)
    return result


def _half(matrix: Array, pes: int) -> int:
    return matrix.size // pes // 2


CASES = (
    AccessCase("pieces", pieces, lambda matrix, _pes: matrix),
    AccessCase(
        "read across", read_across, lambda matrix, pes: np.roll(matrix, -_half(matrix, pes))
    ),
    AccessCase(
        "write across", write_across, lambda matrix, pes: np.roll(matrix, _half(matrix, pes))
    ),
    AccessCase("read strided", read_strided, _gathered),
    AccessCase("write strided", write_strided, _scattered),
    AccessCase(
        "tiles",
        tiles,
        lambda matrix, _pes: matrix,
        torch.blocked_column_major(TILE_ROWS, TILE_COLUMNS),
    ),
)


@bench(
    "va-offset-verify",
    "virtual addresses: pieces across pages and memories, strided, in tiles; "
    "checked element by element",
    columns=f"columns of the int32 matrix that is moved; every PE has {ROWS} rows of it",
    cubes="cubes of a SIP that take part; 0: all",
    pes="PEs of each of these cubes; 0: all",
)
def va_offset_verify(
    rank: int, *, columns: int = 750, cubes: int = 1, pes: int = 0
) -> BenchOutcome:
    """Every rank moves its own matrix once in each case."""
    properties = torch.ahbm.get_device_properties()
    cubes = checked_count("cubes", cubes, properties.cubes, "a SIP")
    pes = checked_count("pes", pes, properties.pes_per_cube, "a cube")
    _check_columns(columns, cubes * pes, properties.kernel_scratch_bytes_per_pe)
    torch.ahbm.set_device(rank)
    rows, failed = list[TableRow](), 0
    for case in CASES:
        time_ps, is_right = _move_matrix(case, rank, columns, cubes, pes)
        nbytes = ROWS * columns * cubes * pes * torch.int32.itemsize
        # Each element is read once and written once.
        rate_gbs = 2 * nbytes * 1000 / time_ps
        rows.append(TableRow((case.name, cubes, pes, nbytes), time_ps, (rate_gbs,)))
        failed += not is_right
    table = Table(LABELS, METRICS, tuple(rows))
    if not torch.ahbm.has_data():
        return BenchOutcome("va_offset_verify", 0, 0, unchecked=len(CASES), table=table)
    return BenchOutcome("va_offset_verify", len(CASES) - failed, failed, table=table)


def _move_matrix(
    case: AccessCase, rank: int, columns: int, cubes: int, pes: int
) -> tuple[int, bool]:
    """The time of the kernel, and whether every element is right."""
    rows = ROWS * cubes * pes
    # All ranks together have no number twice: an element of another rank would be found.
    matrix = (np.arange(rows * columns, dtype=np.int32) + rank * rows * columns).reshape(
        rows, columns
    )
    placement = DPPolicy(cube="row_wise", pe="row_wise", num_cubes=cubes, num_pes=pes)
    source = torch.from_numpy(matrix, dp=placement, layout=case.layout)
    # -1 occurs in no matrix: an element that no kernel writes counts as wrong.
    target = torch.full((rows, columns), -1, dtype=torch.int32, dp=placement)
    launched = torch.launch(case.name, case.kernel, source, target, columns)
    result = target.numpy()
    return launched.pe_exec_ps, np.array_equal(result, case.expected(matrix, cubes * pes))


def _check_columns(columns: int, pes: int, capacity: int) -> None:
    if columns < pes:
        raise UsageError(
            f"--columns {columns}: must be at least {pes}, one to gather for each of the {pes} PEs"
        )
    nbytes = ROWS * pes * -(-columns // pes) * torch.int32.itemsize
    if nbytes > capacity:
        raise UsageError(
            f"--columns {columns}: a PE holds {nbytes:,} bytes at once; "
            f"the scratch of a kernel has {capacity:,}"
        )
