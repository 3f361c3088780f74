"""The kernel of a product whose panels are copied to the cubes that use them.

A cube computes one block of the result, its PEs the parts of the block. The operands pass in chunks
of the depth. Every PE of a cube copies one *slot* of each chunk, an equal part of it, to its own
HBM slice, from the slice that holds it or from another cube that has copied it before: a panel
crosses the links between cubes about once. A barrier later the PEs of the cube load the chunk from
their eight slices, and multiply it beside the copies of the next ones.
"""

from math import prod
from typing import NamedTuple

from runtime.language import tl
from runtime.language.value import Pointer, Value

Descriptor = tuple[tuple[int, ...], tuple[int, ...]]
"""The shape and the strides of a block of memory, in elements."""


class SlotCopy(NamedTuple):
    """A slot of a chunk: a block of memory, `offset` elements behind the operand or, if it is
    `staged`, behind its copies; the `target` is an offset in the copies.
    """

    chunk: int
    staged: bool
    offset: int
    target: int


class ChunkLoads(NamedTuple):
    """Loads of a PE for its panel of a chunk: the block, `offset` elements behind that of the first
    chunk, and `by_part` times the number of its part; the shape of the panel.
    """

    block: Descriptor
    offset: int
    by_part: int
    shape: tuple[int, int]


class OperandLoads(NamedTuple):
    """An operand by chunk: the panels, which are those of its copies if `slots` has the block of a
    slot in memory, and may be transposed; and the parts of columns of a slot, stored one behind the
    other.
    """

    panels: tuple[ChunkLoads, ...]
    is_turned: bool
    slots: tuple[Descriptor, ...]
    parts: int


class CubeOperand(NamedTuple):
    """An operand of all PEs: its elements, its copies in the cubes, how both are loaded."""

    source: Pointer
    copies: Pointer | None
    loads: OperandLoads


class OperandTask(NamedTuple):
    """The part of a PE: its copies by step, the offset of its panel, the number of its part."""

    steps: tuple[tuple[SlotCopy, ...], ...]
    offset: int
    part: int


class CubeTask(NamedTuple):
    """The part of a PE: of both operands, and the shape, the first row and the first column of its
    part of the result.
    """

    a: OperandTask
    b: OperandTask
    shape: tuple[int, int]
    row: int
    column: int


class CubeResult(NamedTuple):
    """The matrix of the result, with the pitch of its rows, and the row that is added to all."""

    pointer: Pointer
    pitch: int
    bias: Pointer | None


class Steps(NamedTuple):
    """Steps of the copies: whether a PE stores in each, and the step after which the first chunk
    is in every cube.
    """

    stored: tuple[bool, ...]
    delay: int


def multiply_in_cubes(
    task: CubeTask, steps: Steps, a: CubeOperand, b: CubeOperand, result: CubeResult
) -> None:
    """Kernel: the part of a PE of `a @ b + bias`, in float32 over the whole depth."""
    product = _Product(task, (a, b), result)
    operands = _Copying(a, task.a), _Copying(b, task.b)
    product.prefetch()
    for step, is_stored in enumerate(steps.stored):
        for each in operands:
            each.load(step)
        stores = [store for each in operands for store in each.stores(step - 1)]
        product.load(step - steps.delay)
        product.multiply(step - steps.delay - 1)
        for store in stores:
            store.wait()
        if is_stored:
            tl.barrier()
    for chunk in range(max(0, len(steps.stored) - steps.delay), len(a.loads.panels) + 1):
        product.load(chunk)
        product.multiply(chunk - 1)


class _Copying:
    """The copies of one operand by this PE. Those of a step are loaded beside the stores of the
    step before and a barrier, so that the links are never idle.
    """

    def __init__(self, operand: CubeOperand, task: OperandTask) -> None:
        self._operand, self._steps = operand, task.steps
        self._rings: dict[tuple[int, int], Value] = {}
        self._loading: dict[int, list[tuple[SlotCopy, tl.PendingValue]]] = {}

    def load(self, step: int) -> None:
        """Start the loads of a step."""
        source, copies, loads = self._operand
        if copies is None or step >= len(self._steps):
            return
        loading = self._loading.setdefault(step, [])
        for number, each in enumerate(self._steps[step]):
            shape, strides = loads.slots[each.chunk]
            if each.staged:
                shape, strides = (prod(shape),), (1,)
            start = (copies if each.staged else source) + each.offset
            buffer = self._buffer((step % 2, number), shape)
            loading.append((each, tl.load_async(start, shape, strides, out=buffer)))

    def stores(self, step: int) -> list[tl.PendingResult]:
        """Start the stores of a step, each when its load is complete."""
        _, copies, loads = self._operand
        pending = list[tl.PendingResult]()
        if copies is None:
            return pending
        for each, loading in self._loading.pop(step, ()):
            value, parts = loading.wait(), 1 if each.staged else loads.parts
            width, length = value.shape[-1] // parts, prod(value.shape) // parts
            if parts > 1:
                value = value.reshape((-1, value.shape[-1]))
            for part in range(parts):
                own = value if parts == 1 else value[:, part * width : (part + 1) * width]
                pending.append(tl.store_async(copies + each.target + part * length, own))
        return pending

    def _buffer(self, key: tuple[int, int], shape: tuple[int, ...]) -> Value:
        if key not in self._rings:
            longest = max(prod(each) for each, _ in self._operand.loads.slots)
            self._rings[key] = tl.empty((longest,), self._operand.source.dtype)
        return self._rings[key][: prod(shape)].reshape(shape)


class _Product:
    """The product of a PE: two panels of each operand in TCM, and the sums."""

    def __init__(
        self,
        task: CubeTask,
        operands: tuple[CubeOperand, CubeOperand],
        result: CubeResult,
    ) -> None:
        self._task, self._operands, self._result = task, operands, result
        self._count = len(operands[0].loads.panels)
        self._rings = [
            [
                tl.empty((max(prod(each.shape) for each in panels),), source.dtype)
                for _ in range(min(2, self._count))
            ]
            for source, _, (panels, *_) in operands
        ]
        self._loading: dict[int, dict[int, tl.PendingValue]] = {}
        self._last = list[tuple[Value, Value]]()
        rows, columns = task.shape
        self._sums = tl.empty((rows, columns), tl.float32) if self._count > 1 else None

    def prefetch(self) -> None:
        """Start the first loads of an operand without copies: they wait for nothing."""
        for number, (_, copies, _) in enumerate(self._operands):
            if copies is None:
                for chunk in range(len(self._rings[number])):
                    self._load(chunk, number)

    def load(self, chunk: int) -> None:
        """Start the loads of both panels of a chunk."""
        if 0 <= chunk < self._count:
            for number in range(2):
                if number not in self._loading.get(chunk, {}):
                    self._load(chunk, number)

    def _load(self, chunk: int, number: int) -> None:
        source, copies, loads = self._operands[number]
        task = (self._task.a, self._task.b)[number]
        (shape, strides), behind, by_part, _ = loads.panels[chunk]
        start = source if copies is None else copies
        start += task.offset + behind + by_part * task.part
        out = self._rings[number][chunk % 2][: prod(shape)].reshape(shape)
        loading = self._loading.setdefault(chunk, {})
        loading[number] = tl.load_async(start, shape, strides, out=out)

    def multiply(self, chunk: int) -> None:
        """Queue the product of a chunk, once its panels are loaded."""
        if len(self._loading.get(chunk, ())) < 2:
            return
        panels, loading = list[Value](), self._loading.pop(chunk)
        for number, (_, _, loads) in enumerate(self._operands):
            panel = loading[number].wait().reshape(loads.panels[chunk].shape)
            panels.append(panel.mT if loads.is_turned else panel)
        a, b = panels
        if chunk < self._count - 2:
            tl.composite("gemm", a, b, self._sums, acc=self._sums if chunk else None)
            return
        self._last.append((a, b))
        if chunk == self._count - 1:
            self._finish()

    def _finish(self) -> None:
        """The products of the last chunks, by columns: some are stored beside the others."""
        (rows, columns), width = self._task.shape, tl.gemm_tile().n
        pointer, pitch, bias = self._result
        pointer += self._task.row * pitch + self._task.column
        for first in range(0, columns, width):
            span = slice(first, min(first + width, columns))
            out = tl.ref(pointer + first, (rows, span.stop - first), strides=(pitch, 1))
            row = None
            if bias is not None:
                row = tl.load(bias + self._task.column + first, span.stop - first)
            *before, (a, b) = self._last
            sums = None if self._sums is None else self._sums[:, span]
            acc = sums if self._count > 2 else None
            for left, right in before:
                tl.composite("gemm", left, right[:, span], sums, acc=acc)
                acc = sums
            tl.composite("gemm", a, b[:, span], out, acc=acc, bias=row)
