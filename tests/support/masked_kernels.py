"""Programs that select among undefined elements by masks of integers, and their right twins.

Each takes `right`, which is 1 for the twin: it selects defined elements alone.
"""

from collections.abc import Callable

from runtime import tl, torch
from runtime.language.value import Pointer
from tests.support.undefined_kernels import COUNT, ON_ONE, launch, tensor

DEFINED = 40
"""The elements at the begin of a tensor that are written."""
MASKED: dict[str, Callable[[int], None]] = {}
Masked = Callable[[Pointer, Pointer, int], None]


def masked(kernel: Masked) -> Masked:
    """Add a program that launches a kernel on a tensor of which a part is written."""

    def program(right: int) -> None:
        x = torch.empty(COUNT, dp=ON_ONE)
        launch(write, x)
        launch(kernel, x, tensor(1), right)

    MASKED[kernel.__name__] = program
    return kernel


def write(x: Pointer) -> None:
    tl.store(x, tl.full(DEFINED, 1.0, tl.float32))


@masked
def a_prefix(x: Pointer, y: Pointer, right: int) -> None:
    mask = tl.arange(0, COUNT) < DEFINED + 1 - right
    tl.store(y, tl.where(mask, tl.load(x, COUNT), 0.0) + 1)


@masked
def bits_of_masks(x: Pointer, y: Pointer, right: int) -> None:
    numbers = tl.arange(0, COUNT)
    mask = ~(numbers >= DEFINED) & ((numbers > 3) | (numbers < 0)) ^ (numbers == -1)
    tl.store(y, tl.where(mask if right else ~mask, tl.load(x, COUNT), 0.0) + 1)


@masked
def the_other_choice(x: Pointer, y: Pointer, right: int) -> None:
    mask, zeros = tl.arange(0, COUNT) < DEFINED, tl.full(COUNT, 0.0, tl.float32)
    own = tl.load(x, COUNT)
    tl.store(y, (tl.where(mask, own, zeros) if right else tl.where(mask, zeros, own)) + 1)


@masked
def rows_and_columns(x: Pointer, y: Pointer, right: int) -> None:
    row, column = tl.arange(0, 8)[:, None], tl.arange(0, 8)[None, :]
    mask = (row < 5) & (column <= row) if right else column <= row
    tl.store(y, tl.sum(tl.where(mask, tl.load(x, (8, 8)), 0.0)))


@masked
def a_transposed_mask(x: Pointer, y: Pointer, right: int) -> None:
    mask = tl.zeros((8, 8), tl.int32) + tl.arange(0, 8)[None, :] < 5
    mask = tl.trans(mask) if right else mask
    tl.store(y, tl.sum(tl.where(mask, tl.load(x, (8, 8)), 0.0)))


@masked
def a_part_of_a_mask(x: Pointer, y: Pointer, right: int) -> None:
    mask = tl.arange(0, 2 * COUNT) < COUNT + DEFINED
    part = mask[COUNT:] if right else mask[:COUNT]
    tl.store(y, tl.where(part, tl.load(x, COUNT), 0.0) + 1)


@masked
def a_mask_written_over(x: Pointer, y: Pointer, right: int) -> None:
    numbers = tl.arange(0, COUNT)
    # Every pass of the loop has its own mask in the same scratch.
    for step in range(3):
        with tl.scratch():
            mask = numbers + step < DEFINED + step + 1 - right
            tl.store(y, tl.where(mask, tl.load(x, COUNT), 0.0) + 1)


@masked
def both_choices(x: Pointer, y: Pointer, right: int) -> None:
    mask = tl.load(y, COUNT) > 0
    own = tl.load(x, COUNT)
    if right:
        own = tl.full(COUNT, 1.0, tl.float32)
    # A mask that is loaded: both choices are undefined.
    tl.store(y, tl.where(mask, own, own) + 1)


@masked
def a_copy_of_a_selection(x: Pointer, y: Pointer, right: int) -> None:
    numbers = tl.arange(0, COUNT)
    tl.store(x, tl.where(numbers < DEFINED + 9, tl.load(x, COUNT), 0.0))
    tl.store(y, tl.load(x, DEFINED + 1 - right) + 1)


@masked
def inside_a_chain(x: Pointer, y: Pointer, right: int) -> None:
    def of(block: tl.Value) -> tl.Value:
        mask = tl.arange(0, COUNT) < DEFINED + 1 - right
        return tl.exp(tl.where(mask, block, 0.0))

    tl.store(y, tl.fused(of, tl.load(x, COUNT)))


@masked
def computed_before_its_selection(x: Pointer, y: Pointer, right: int) -> None:
    def of(block: tl.Value, numbers: tl.Value) -> tl.Value:
        mask = numbers < DEFINED
        if right:
            return tl.exp(tl.where(mask, block, 0.0))
        return tl.where(mask, tl.exp(block), 0.0)

    tl.store(y, tl.fused(of, tl.load(x, COUNT), tl.arange(0, COUNT)))


@masked
def a_mask_of_a_chain(x: Pointer, y: Pointer, right: int) -> None:
    def of(numbers: tl.Value) -> tl.Value:
        return (numbers < DEFINED + 1 - right) & (numbers >= 0)

    mask = tl.fused(of, tl.arange(0, COUNT))
    tl.store(y, tl.where(mask, tl.load(x, COUNT), 0.0) + 1)


@masked
def a_masked_softmax(x: Pointer, y: Pointer, right: int) -> None:
    def of(block: tl.Value) -> tl.Value:
        row, column = tl.arange(0, 8)[:, None], tl.arange(0, 8)[None, :]
        mask = (row < 6 - right) & (column <= row)
        scores = tl.where(mask, block, float("-inf"))
        return scores - tl.max(scores, 1, keep_dims=True)

    tl.store(y, tl.fused(of, tl.load(x, (8, 8))).reshape(COUNT))


def programs_of_a_grid(right: int) -> None:
    def kernel(x: Pointer, y: Pointer, count: int) -> None:
        first = tl.program_id(0) * 16
        mask = first + tl.arange(0, 16) < count
        tl.store(y + first, tl.where(mask, tl.load(x + first, 16), 0.0) * 2)

    x = torch.empty(COUNT, dp=ON_ONE)
    launch(write, x)
    torch.launch("grid", kernel, x, tensor(1), DEFINED + 1 - right, grid=(4,))


def the_mask_itself(right: int) -> None:
    def kernel(mask: Pointer, y: Pointer) -> None:
        tl.store(y, tl.where(tl.load(mask, COUNT), tl.load(y, COUNT), 0.0))

    make = torch.zeros if right else torch.empty
    launch(kernel, make(COUNT, dtype=torch.bool, dp=ON_ONE), tensor(1))


MASKED["programs_of_a_grid"] = programs_of_a_grid
MASKED["the_mask_itself"] = the_mask_itself
