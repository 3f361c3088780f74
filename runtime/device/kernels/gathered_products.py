"""The kernel of a product of which one operand is copied to every cube, and the other one stays.

Each PE owns a range of the free axis of one operand, as a rule that which its HBM slice holds, and
reads it once. The other operand is *gathered*: it passes in chunks of the depth. Every PE of a cube
copies one slot of a chunk, an equal part of it, to its own slice, or, as a relay, a part of it to
the slices of several cubes. A barrier later the PEs load the chunk from the slices of their cube,
and multiply it beside the copies of the next one.

    memory of all cubes --load--> TCM --store--> slices               a slot, chunks ahead
    slices of the cube  --load--> TCM --+
    own slice           --load--> TCM --+--> GEMM engine --> result   a chunk, one behind
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import NamedTuple

from runtime.language import tl
from runtime.language.context import BarrierScope
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
    """A part of a slot that a PE copies: a block of the operand, and the first elements of its
    copies behind those of the PE's cube, where its rows have no gaps.
    """

    source: PanelBlock
    targets: tuple[int, ...]


class GatheredPanel(NamedTuple):
    """A panel over a chunk of the depth: its blocks of the copies, which follow each other in its
    memory, the length of its rows, and the lengths of the steps into which the depth is cut.
    """

    blocks: tuple[PanelBlock, ...]
    width: int
    steps: tuple[int, ...]


class GatheredChunk(NamedTuple):
    """A chunk of the depth: what the PE copies, of each matrix that its cube multiplies, and the
    panel, if it multiplies one.
    """

    copied: tuple[SlotCopying, ...]
    panel: GatheredPanel | None


class OwnPart(NamedTuple):
    """A range of the own operand: its first element and its length, the first element of its
    results, and that of the bias of its columns; the copies of the matrix that it multiplies.
    """

    pointer: Pointer
    length: int
    result: Pointer
    bias: Pointer | None
    copies: Pointer


class GatheredShape(NamedTuple):
    """Both operands: whether the own one is the right one, and whether the rows in memory are those
    of the depth; the distances of the rows of the own operand and of the result; the depth and the
    number of own panels in TCM, and of those that are loaded before the first chunk; whether PEs
    copy to other cubes than their own.
    """

    own_is_b: bool
    gathered_by_depth: bool
    own_by_depth: bool
    own_pitch: int
    result_pitch: int
    step: int
    ring: int
    early: int
    is_relayed: bool


def multiply_gathered(
    shape: GatheredShape,
    chunks: Sequence[GatheredChunk],
    gathered: Pointer,
    copies: Pointer,
    parts: Sequence[OwnPart],
) -> None:
    """Kernel: the part of a PE of `a @ b + bias`, or of a batch, in float32 over the whole depth.
    `copies` are those of its cube.
    """
    slots = _SlotCopies(chunks, gathered, copies, "launch" if shape.is_relayed else "cube")
    if not parts:
        # Other PEs of the cube multiply what this one copies.
        for chunk in range(len(chunks)):
            slots.store(chunk)
            slots.finish()
    for number, part in enumerate(parts):
        with tl.scratch():
            product = _OwnProduct(shape, chunks, part)
            product.prefetch(shape.early)
            # The slots are there for the parts to come.
            if not number:
                slots.store(0)
            for chunk in range(len(chunks)):
                if not number:
                    slots.finish()
                product.load(chunk)
                if not chunk:
                    product.prefetch(shape.ring)
                if not number and chunk + 1 < len(chunks):
                    slots.store(chunk + 1)
                product.multiply(chunk)


class _SlotCopies:
    """The slots of a PE, which it loads ahead and stores chunk by chunk."""

    def __init__(
        self,
        chunks: Sequence[GatheredChunk],
        gathered: Pointer,
        copies: Pointer,
        scope: BarrierScope,
    ) -> None:
        self._slots = [each.copied for each in chunks]
        self._gathered, self._copies = gathered, copies
        self._scope: BarrierScope = scope
        self._stored = list[tl.PendingResult]()
        longest = max(sum(prod(each.source.shape) for each in slot) for slot in self._slots)
        count = min(COPIED_AHEAD + 1, len(chunks)) if longest else 0
        self._ring = [tl.empty((longest,), gathered.dtype) for _ in range(count)]
        self._loading: dict[int, list[tl.PendingValue]] = {}
        for chunk in range(COPIED_AHEAD):
            self._load(chunk)

    def store(self, chunk: int) -> None:
        """Start the stores of what this PE copies of a chunk, which it has loaded."""
        self._stored = [
            tl.store_async(self._copies + target, loading.wait())
            for slot, loading in zip(self._slots[chunk], self._loading.pop(chunk), strict=True)
            for target in slot.targets
        ]
        self._load(chunk + COPIED_AHEAD)

    def finish(self) -> None:
        """Wait until all PEs have stored what they copy of the chunk."""
        for each in self._stored:
            each.wait()
        tl.barrier(self._scope)

    def _load(self, chunk: int) -> None:
        if chunk >= len(self._slots):
            return
        begin, loading = 0, self._loading.setdefault(chunk, [])
        for slot in self._slots[chunk]:
            end = begin + prod(slot.source.shape)
            buffer = self._ring[chunk % len(self._ring)][begin:end]
            loading.append(_load(self._gathered, slot.source, buffer))
            begin = end


class _OwnProduct:
    """The product of one part of the own operand with all chunks."""

    def __init__(
        self,
        shape: GatheredShape,
        chunks: Sequence[GatheredChunk],
        part: OwnPart,
    ) -> None:
        self._shape, self._part = shape, part
        dtype = part.pointer.dtype
        panels = [each.panel for each in chunks if each.panel is not None]
        depth = sum(sum(panel.steps) for panel in panels)
        self._ends = [min(first + shape.step, depth) for first in range(0, depth, shape.step)]
        size = part.length * min(shape.step, depth)
        self._ring = [tl.empty((size,), dtype) for _ in self._ends[: shape.ring]]
        self._chunks = panels
        self._panels = [tl.empty((max(map(_elements, panels)),), dtype) for _ in panels[:2]]
        self._loading: dict[int, list[tl.PendingValue]] = {}
        self._own: dict[int, tl.PendingValue] = {}
        self._depth = 0
        self._sums: Value | None = None

    def prefetch(self, count: int) -> None:
        """Start the loads of the first `count` own panels, which wait for nothing."""
        for number in range(len(self._own), min(count, len(self._ring))):
            self._load_own(number)

    def load(self, chunk: int) -> None:
        """Start the loads of the panel of a chunk."""
        buffer, begin = self._panels[chunk % len(self._panels)], 0
        loading = self._loading.setdefault(chunk, [])
        for block in self._chunks[chunk].blocks:
            end = begin + prod(block.shape)
            loading.append(_load(self._part.copies, block, buffer[begin:end]))
            begin = end

    def multiply(self, chunk: int) -> None:
        """Queue the products of a chunk, once its panel is loaded."""
        for each in self._loading.pop(chunk):
            each.wait()
        panel, buffer = self._chunks[chunk], self._panels[chunk % len(self._panels)]
        value = buffer[: _elements(panel)].reshape((-1, panel.width))
        for begin, end in pairwise(accumulate(panel.steps, initial=0)):
            part = value[begin:end] if self._shape.gathered_by_depth else value[:, begin:end]
            self._multiply_step(part)

    def _multiply_step(self, gathered: Value) -> None:
        """The product of a range of the depth, which lies in one own panel."""
        shape, begin = self._shape, self._depth
        number, first = divmod(begin, shape.step)
        own, last = self._own[number].wait(), first
        last += gathered.shape[0 if shape.gathered_by_depth else 1]
        own = own[first:last] if shape.own_by_depth else own[:, first:last]
        if shape.own_is_b:
            a = gathered.mT if shape.gathered_by_depth else gathered
            b = own if shape.own_by_depth else own.mT
        else:
            a = own.mT if shape.own_by_depth else own
            b = gathered if shape.gathered_by_depth else gathered.mT
        self._depth = begin + last - first
        self._queue(a, b, is_last=self._depth == self._ends[-1])
        # The panel before this one is free sooner.
        if number and not first:
            del self._own[number - 1]
            self._load_own(number - 1 + len(self._ring))

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
        result = tl.empty((rows, columns), part.result.dtype)
        for first in range(0, rows, height):
            span = slice(first, min(first + height, rows))
            acc = None if self._sums is None else self._sums[span]
            tl.composite("gemm", a[span], b, result[span], acc=acc, bias=row)
        # A store waits for the product whose result it reads.
        pitch = self._shape.result_pitch
        for first in range(0, rows, height):
            strip = result[first : first + height]
            tl.store_async(part.result + first * pitch, strip, strides=(pitch, 1))

    def _load_own(self, number: int) -> None:
        if number >= len(self._ends):
            return
        begin, end = number * self._shape.step, self._ends[number]
        pitch, length = self._shape.own_pitch, self._part.length
        if self._shape.own_by_depth:
            block = PanelBlock(begin * pitch, (end - begin, length), pitch)
        else:
            block = PanelBlock(begin, (length, end - begin), pitch)
        buffer = self._ring[number % len(self._ring)][: prod(block.shape)]
        self._own[number] = _load(self._part.pointer, block, buffer)


def _elements(panel: GatheredPanel) -> int:
    return sum(prod(each.shape) for each in panel.blocks)


def _load(start: Pointer, block: PanelBlock, buffer: Value) -> tl.PendingValue:
    out = buffer.reshape(block.shape)
    return tl.load_async(start + block.offset, block.shape, strides=(block.pitch, 1), out=out)
