"""Kernels of grids of eight programs with a race, and their right twins. See racy_kernels.py."""

from runtime import tl
from runtime.language.value import Pointer
from tests.support.racy_kernels import Kernel

GRIDS: dict[str, Kernel] = {}
"""Kernels of a grid of eight programs."""


def of_grid(kernel: Kernel) -> Kernel:
    """Add a kernel of a grid."""
    GRIDS[kernel.__name__] = kernel
    return kernel


@of_grid
def grid_in_place(x: Pointer, y: Pointer, right: int) -> None:
    own, other = tl.program_id(0) * 8, (tl.program_id(0) + 1) % 8 * 8
    block = tl.load(x + other, 8)
    tl.store((y if right else x) + own, block + 1)


@of_grid
def grid_of_one_pe(x: Pointer, y: Pointer, right: int) -> None:
    # Programs 0 and 4 run on one PE, one behind the other, and have no order all the same.
    own, other = tl.program_id(0) * 8, (tl.program_id(0) + 4) % 8 * 8
    tl.store(x + own, tl.full(8, 1.0, tl.float32))
    tl.store(y + own, tl.load(x + (own if right else other), 8))


@of_grid
def grid_of_blocks(x: Pointer, y: Pointer, right: int) -> None:
    # Two rows of eight columns for each program: the twin loads its own.
    own = tl.program_id(0) * 32
    tl.store(x + own, tl.full((2, 8), 1.0, tl.float32), strides=(16, 1))
    first = own if right else max(own - 16, 0)
    tl.store(y + own, tl.load(x + first, (2, 8), strides=(16, 1)), strides=(16, 1))


@of_grid
def grid_of_an_uneven_size(x: Pointer, y: Pointer, right: int) -> None:
    # 250 elements in parts of 32: the last part but one loads an element of the last.
    first = tl.program_id(0) * 32
    count = min(32, 250 - first)
    loaded = count + (not right and tl.program_id(0) == 6)
    tl.store(x + first, tl.load(x + first, loaded)[:count] + 1)
