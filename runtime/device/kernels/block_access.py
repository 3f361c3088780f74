"""Loads and stores of the blocks of an operation on corresponding elements."""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from runtime.device.kernels.streamed import BlockRing
from runtime.device.regions.blocks import MatrixBlock
from runtime.language import tl
from runtime.language.value import Pointer, Shape, Value

REPEATED_BYTES = 1 << 16
"""Scratch for the parts of a repeated operand that are kept, unless a few of them take more."""


class JobBlock(NamedTuple):
    """A block of one of the jobs of a launch on a PE; a job has a pointer to each tensor."""

    job: int
    block: MatrixBlock


class BlockOperand:
    """The tensor with a number in a stream of blocks, at a pointer for each job. At least `slots`
    blocks of it are in the scratch at once.

    What several blocks repeat, such as a row of a bias, is loaded once, as long as there is memory
    for it: all PEs load it from one slice.
    """

    def __init__(
        self,
        pointers: Sequence[Pointer],
        number: int,
        items: Sequence[JobBlock],
        slots: int,
    ) -> None:
        self._number, self._pointers, self._items = number, pointers, items
        shapes = [loaded_shape(each.block, number) for each in items]
        most, dtype = max(map(prod, shapes)), pointers[0].dtype
        if any(shape != each.block.shape for shape, each in zip(shapes, items, strict=True)):
            parts = len({self._part(each) for each in items})
            slots = min(parts, max(slots, REPEATED_BYTES // (most * dtype.itemsize)))
        self._ring, self._slots = BlockRing(slots, most, dtype), slots
        # The parts in the scratch, in the order of their last use.
        self._kept: dict[tuple[int, int, Shape], tuple[int, tl.PendingValue]] = {}
        self._pending: dict[int, tl.PendingValue] = {}

    def load(self, index: int) -> None:
        """Start to load the block with a number, unless it is in the scratch."""
        part = self._part(self._items[index])
        slot, pending = self._kept.pop(part, (len(self._kept), None))
        if pending is None:
            if slot == self._slots:
                # Over the part that was used least recently.
                slot, _ = self._kept.pop(next(iter(self._kept)))
            pending = self._started(self._items[index], slot)
        self._kept[part] = slot, pending
        self._pending[index] = pending

    def loaded(self, index: int) -> Value:
        """The elements of a block, when they are in the scratch."""
        return self._pending.pop(index).wait()

    def _part(self, item: JobBlock) -> tuple[int, int, Shape]:
        start = item.block.starts[self._number]
        return item.job, start, loaded_shape(item.block, self._number)

    def _started(self, item: JobBlock, slot: int) -> tl.PendingValue:
        source = self._pointers[item.job]
        pointer, shape, strides = loaded_block(item.block, self._number, source)
        return tl.load_async(pointer, shape, strides, out=self._ring.of(slot, shape))


class BlockStores:
    """Stores of a stream of blocks: those of a block begin when those before are complete."""

    def __init__(self, items: Sequence[JobBlock]) -> None:
        self._items = items
        self._pending: list[tl.PendingResult] = []

    def start(self, index: int, stores: Sequence[tuple[int, Pointer, Value]]) -> None:
        """Start to store elements of the block with a number: each (tensor, pointer, elements)."""
        for each in self._pending:
            each.wait()
        block = self._items[index].block
        self._pending = [
            tl.store_async(
                pointer + block.starts[number], value, descriptor(block, number, block.shape)
            )
            for number, pointer, value in stores
        ]


def loaded_block(
    block: MatrixBlock, tensor: int, pointer: Pointer
) -> tuple[Pointer, tuple[int, int], tuple[int, int] | None]:
    """The arguments of the load of a block."""
    shape = loaded_shape(block, tensor)
    return pointer + block.starts[tensor], shape, descriptor(block, tensor, shape)


def loaded_shape(block: MatrixBlock, tensor: int) -> tuple[int, int]:
    """The shape of a tensor in a block: along an axis where it is repeated, it has one element."""
    by_row, by_column = block.strides[tensor]
    return block.shape[0] if by_row else 1, block.shape[1] if by_column else 1


def descriptor(block: MatrixBlock, tensor: int, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """The strides of a block of a tensor; None if it has no gaps."""
    by_row, by_column = block.strides[tensor]
    if shape[0] > 1 and shape[1] > 1:
        return (by_row, by_column)
    if shape[0] > 1:
        return (by_row, 1)
    return (1, by_column) if by_column > 1 else None
