"""The kernel of a product of which one operand is copied to every cube, and the other one stays.

Each PE owns a range of the free axis of one operand, as a rule that which its HBM slice holds, and
reads it once. The other operand is *gathered*: it passes in chunks of the depth. Every PE of a cube
copies one slot of a chunk, an equal part of it, to its own slice. A barrier of the cube later the
PEs load the chunk from the slices of their cube, and multiply it beside the copies of the next one.

    memory of all cubes --load--> TCM --store--> slice of the PE      a slot, chunks ahead
    slices of the cube  --load--> TCM --+
    own slice           --load--> TCM --+--> GEMM engine --> result   a chunk, one behind
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import NamedTuple

from runtime.language import tl
from runtime.language.value import Pointer, Value

COPIED_AHEAD = 2
"""The chunks of which the slots are loaded before that which is stored."""


class PanelBlock(NamedTuple):
    """A block of a matrix in memory: its first element behind a pointer, its rows and columns, and
    the distance of its rows in elements.
    """

    offset: int
    shape: tuple[int, int]
    pitch: int


class SlotCopying(NamedTuple):
    """The slot of a chunk that a PE copies: a block of the operand, and the first element behind
    the copies of the cube, where its rows have no gaps.
    """

    source: PanelBlock
    target: int


class GatheredPanel(NamedTuple):
    """A panel over a range of the depth: its blocks of the copies, which follow each other in its
    rows, and the lengths of the steps into which the depth is cut.
    """

    blocks: tuple[PanelBlock, ...]
    steps: tuple[int, ...]


class GatheredChunk(NamedTuple):
    """A chunk of the depth: the slot that the PE copies, if it has one, and the panels."""

    slot: SlotCopying | None
    panels: tuple[GatheredPanel, ...]


class OwnPart(NamedTuple):
    """A range of the own operand: its first element and its length, the first element of its
    results, and that of the bias of its columns.
    """

    pointer: Pointer
    length: int
    result: Pointer
    bias: Pointer | None


class GatheredShape(NamedTuple):
    """Both operands: whether the own one is the right one, and whether the rows in memory are those
    of the depth; the distances of the rows of the own operand and of the result; the number of own
    panels in TCM.
    """

    own_is_b: bool
    gathered_by_depth: bool
    own_by_depth: bool
    own_pitch: int
    result_pitch: int
    ring: int


def multiply_gathered(
    shape: GatheredShape,
    chunks: Sequence[GatheredChunk],
    gathered: Pointer,
    copies: Pointer,
    parts: Sequence[OwnPart],
) -> None:
    """Kernel: the part of a PE of `a @ b + bias`, in float32 over the whole depth. `copies` are
    those of its cube.
    """
    slots = _SlotCopies(chunks, gathered, copies)
    if not parts:
        # Other PEs of the cube multiply what this one copies.
        for chunk in range(len(chunks)):
            slots.copy(chunk)
    for number, part in enumerate(parts):
        with tl.scratch():
            product = _OwnProduct(shape, chunks, copies, part)
            product.prefetch()
            for chunk in range(len(chunks)):
                # The slots are there for the parts to come.
                if not number:
                    slots.copy(chunk)
                product.load(chunk)
                if chunk:
                    product.multiply(chunk - 1)
            product.multiply(len(chunks) - 1)
            product.finish()


class _SlotCopies:
    """The slots of a PE, which it loads ahead and stores chunk by chunk."""

    def __init__(self, chunks: Sequence[GatheredChunk], gathered: Pointer, copies: Pointer) -> None:
        self._slots, self._gathered, self._copies = [each.slot for each in chunks], gathered, copies
        used = [each.source for each in self._slots if each is not None]
        longest = max((prod(each.shape) for each in used), default=0)
        self._ring = [
            tl.empty((longest,), gathered.dtype) for _ in range(min(COPIED_AHEAD + 1, len(used)))
        ]
        self._loading: dict[int, tl.PendingValue] = {}
        for chunk in range(COPIED_AHEAD):
            self._load(chunk)

    def copy(self, chunk: int) -> None:
        """Store the slot of a chunk, and wait for those of the other PEs of the cube."""
        slot, stored = self._slots[chunk], None
        if slot is not None:
            stored = tl.store_async(self._copies + slot.target, self._loading.pop(chunk).wait())
        self._load(chunk + COPIED_AHEAD)
        if stored is not None:
            stored.wait()
        tl.barrier("cube")

    def _load(self, chunk: int) -> None:
        slot = self._slots[chunk] if chunk < len(self._slots) else None
        if slot is not None:
            block = slot.source
            buffer = self._ring[chunk % len(self._ring)][: prod(block.shape)]
            self._loading[chunk] = _load(self._gathered, block, buffer)


class _OwnProduct:
    """The product of one part of the own operand with all chunks."""

    def __init__(
        self,
        shape: GatheredShape,
        chunks: Sequence[GatheredChunk],
        copies: Pointer,
        part: OwnPart,
    ) -> None:
        self._shape, self._chunks, self._copies, self._part = shape, chunks, copies, part
        dtype = part.pointer.dtype
        steps = [each for chunk in chunks for panel in chunk.panels for each in panel.steps]
        self._bounds = list(pairwise(accumulate(steps, initial=0)))
        self._ring = [tl.empty((part.length * max(steps),), dtype) for _ in steps[: shape.ring]]
        largest = max(sum(map(_elements, chunk.panels)) for chunk in chunks)
        self._panels = [tl.empty((largest,), dtype) for _ in chunks[:2]]
        self._loading: dict[int, list[tuple[GatheredPanel, Value, list[tl.PendingValue]]]] = {}
        self._own: dict[int, tl.PendingValue] = {}
        self._step = 0
        self._sums: Value | None = None
        self._pending = list[tl.PendingResult]()

    def prefetch(self) -> None:
        """Start the loads of the first own panels, which wait for nothing."""
        for step in range(len(self._ring)):
            self._load_own(step)

    def load(self, chunk: int) -> None:
        """Start the loads of the panels of a chunk."""
        buffer, begin = self._panels[chunk % len(self._panels)], 0
        loading = self._loading.setdefault(chunk, [])
        for panel in self._chunks[chunk].panels:
            width, first = panel.blocks[0].shape[1], begin
            pending = list[tl.PendingValue]()
            for block in panel.blocks:
                end = begin + prod(block.shape)
                pending.append(_load(self._copies, block, buffer[begin:end]))
                begin = end
            loading.append((panel, buffer[first:begin].reshape((-1, width)), pending))

    def multiply(self, chunk: int) -> None:
        """Queue the products of a chunk, once its panels are loaded."""
        for panel, value, pending in self._loading.pop(chunk):
            for each in pending:
                each.wait()
            for begin, end in pairwise(accumulate(panel.steps, initial=0)):
                part = value[begin:end] if self._shape.gathered_by_depth else value[:, begin:end]
                self._multiply_step(part)

    def finish(self) -> None:
        """Wait until the result is in memory."""
        for each in self._pending:
            each.wait()

    def _multiply_step(self, gathered: Value) -> None:
        shape, step = self._shape, self._step
        own = self._own.pop(step).wait()
        if shape.own_is_b:
            a = gathered.mT if shape.gathered_by_depth else gathered
            b = own if shape.own_by_depth else own.mT
        else:
            a = own.mT if shape.own_by_depth else own
            b = gathered if shape.gathered_by_depth else gathered.mT
        self._queue(a, b, is_last=step == len(self._bounds) - 1)
        # The panel of the step before is free sooner than that of this step.
        if step:
            self._load_own(step - 1 + len(self._ring))
        self._step += 1

    def _queue(self, a: Value, b: Value, *, is_last: bool) -> None:
        acc = self._sums
        if is_last:
            self._queue_result(a, b)
            return
        if acc is None:
            self._sums = tl.empty((a.shape[0], b.shape[1]), tl.float32)
        tl.composite("gemm", a, b, self._sums, acc=acc)

    def _queue_result(self, a: Value, b: Value) -> None:
        """The products of the last step, by rows of tiles: some are stored beside the others.

        A row of the result is stored at once: rows of a tile would be requests of their own.
        """
        part, (rows, columns), height = self._part, (a.shape[0], b.shape[1]), tl.gemm_tile().m
        row = None if part.bias is None else tl.load(part.bias, columns)
        dtype, pending = part.result.dtype, list[tuple[int, tl.PendingResult]]()
        result, pitch = tl.empty((rows, columns), dtype), self._shape.result_pitch
        for first in range(0, rows, height):
            span = slice(first, min(first + height, rows))
            acc = None if self._sums is None else self._sums[span]
            product = tl.composite("gemm", a[span], b, result[span], acc=acc, bias=row)
            pending.append((first, product))
        for first, product in pending:
            product.wait()
            strip = result[first : first + height]
            target = part.result + first * pitch
            self._pending.append(tl.store_async(target, strip, strides=(pitch, 1)))

    def _load_own(self, step: int) -> None:
        if step >= len(self._bounds):
            return
        (begin, end), pitch, length = self._bounds[step], self._shape.own_pitch, self._part.length
        if self._shape.own_by_depth:
            block = PanelBlock(begin * pitch, (end - begin, length), pitch)
        else:
            block = PanelBlock(begin, (length, end - begin), pitch)
        buffer = self._ring[step % len(self._ring)][: prod(block.shape)]
        self._own[step] = _load(self._part.pointer, block, buffer)


def _elements(panel: GatheredPanel) -> int:
    return sum(prod(each.shape) for each in panel.blocks)


def _load(start: Pointer, block: PanelBlock, buffer: Value) -> tl.PendingValue:
    out = buffer.reshape(block.shape)
    return tl.load_async(start + block.offset, block.shape, strides=(block.pitch, 1), out=out)
