"""The kernel of matrix products: blocks of the results of one product or of a batch, on a PE."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from runtime.language import tl
from runtime.language.value import Pointer, Ref, Value
from runtime.model.placement import Span

_ROTATED_BYTES = 1 << 15
"""A shorter panel is loaded by one request: two take longer than they gain."""


@dataclass(frozen=True)
class ScratchPlan:
    """The panels of one PE: spans of the result's rows and columns, and of the depth.

    `held` names the operand whose groups of panels stay in TCM; `slots` is the length of the ring
    for those of the other operand.
    """

    held: Literal["a", "b"]
    groups: tuple[tuple[Span, ...], ...]
    moving: tuple[Span, ...]
    depths: tuple[Span, ...]
    slots: int


@dataclass(frozen=True)
class OperandPiece:
    """A range of the free axis, and the pointer to its first element at depth 0."""

    span: Span
    pointer: Pointer
    pitch: int


@dataclass(frozen=True)
class ProductOperand:
    """One operand: its pieces, and whether the free axis is that of the rows, in memory and in the
    product.

    Panels are loaded from a row in the middle on, `turn` (part, parts) of all: PEs that load from
    the same slices begin with different ones.
    """

    pieces: tuple[OperandPiece, ...]
    stored_in_rows: bool
    used_in_rows: bool
    turn: tuple[int, int] = (0, 1)

    def moved(self, moved: int, turn: tuple[int, int]) -> "ProductOperand":
        """A matrix some elements behind, whose panels are loaded from a part of the rows on."""
        pieces = tuple(replace(each, pointer=each.pointer + moved) for each in self.pieces)
        return replace(self, pieces=pieces, turn=turn)

    def load(self, span: Span, depth: Span) -> Value:
        """Kernel: a panel in TCM as the product uses it, which may be a transposed view."""
        piece = next(each for each in self.pieces if span[1] <= each.span[1])
        free, deep = span[1] - span[0], depth[1] - depth[0]
        first = span[0] - piece.span[0]
        if self.stored_in_rows:
            start, shape = first * piece.pitch + depth[0], (free, deep)
        else:
            start, shape = depth[0] * piece.pitch + first, (deep, free)
        value = self._loaded(piece.pointer + start, shape, piece.pitch)
        return value if self.stored_in_rows == self.used_in_rows else value.mT

    def _loaded(self, start: Pointer, shape: tuple[int, int], pitch: int) -> Value:
        (rows, columns), (part, parts) = shape, self.turn
        cut = part * rows // parts
        if not cut or rows * columns * start.dtype.itemsize < _ROTATED_BYTES:
            return tl.load(start, shape, strides=(pitch, 1))
        value = tl.empty(shape, start.dtype)
        for begin, end in ((cut, rows), (0, cut)):
            part_shape = (end - begin, columns)
            tl.load(start + begin * pitch, part_shape, (pitch, 1), out=value[begin:end])
        return value


@dataclass(frozen=True)
class ResultMatrix:
    """The memory of a matrix of the result: element (0, 0) would be at `pointer`."""

    pointer: Pointer
    pitch: int

    def ref(self, rows: Span, columns: Span) -> Ref:
        """A block of it, to which a composite streams."""
        start = self.pointer + rows[0] * self.pitch + columns[0]
        shape = rows[1] - rows[0], columns[1] - columns[0]
        return tl.ref(start, shape, strides=(self.pitch, 1))

    def load(self, rows: Span, columns: Span) -> Value:
        """A block of it in TCM."""
        block = self.ref(rows, columns)
        return tl.load(block.pointer, block.shape, strides=block.strides)


@dataclass(frozen=True)
class ProductTask:
    """The product of one PE: its panels, and the matrix that its block is a part of.

    `turn` is the panel with which it begins; PEs that load the same panels begin with different
    ones, so that they load from different slices. `moved` are the elements from the first matrices
    of both operands and of the sums to those of the task, `starts` the parts of the rows of both
    operands with which the loads of a panel begin. With `has_bias`, that of the launch is added.
    """

    plan: ScratchPlan
    result: ResultMatrix
    turn: int
    moved: tuple[int, int, int] = (0, 0, 0)
    starts: tuple[tuple[int, int], tuple[int, int]] = ((0, 1), (0, 1))
    has_bias: bool = True


class _Panel(NamedTuple):
    span: Span
    value: Value
    bias: Value | None


def multiply(
    tasks: Sequence[ProductTask],
    a: ProductOperand,
    b: ProductOperand,
    bias: ProductOperand | None,
    sums: ResultMatrix | None = None,
) -> None:
    """Kernel: blocks of the results `a @ b + bias`.

    The sums between the parts of the depth, if there are several, are in `sums`.
    """
    for task in tasks:
        (by_a, by_b, by_sums), (of_a, of_b) = task.moved, task.starts
        matrices = a.moved(by_a, of_a), b.moved(by_b, of_b)
        added = bias if task.has_bias else None
        own_sums = None if sums is None else replace(sums, pointer=sums.pointer + by_sums)
        for depth in task.plan.depths:
            products = _products(task, *matrices, added, own_sums, depth)
            for group in task.plan.groups:
                with tl.scratch():
                    products.run(group, _turned(task.plan.moving, task.turn), task.plan.slots)


class ProductJob(NamedTuple):
    """The part of a PE in one of several products."""

    tasks: Sequence[ProductTask]
    a: ProductOperand
    b: ProductOperand
    bias: ProductOperand | None
    sums: ResultMatrix | None


def multiply_each(jobs: Sequence[ProductJob]) -> None:
    """Kernel: blocks of independent products."""
    for job in jobs:
        multiply(*job)


def _products(
    task: ProductTask,
    a: ProductOperand,
    b: ProductOperand,
    bias: ProductOperand | None,
    sums: ResultMatrix | None,
    depth: Span,
) -> "_Products":
    plan, is_a = task.plan, task.plan.held == "a"
    is_last = depth == plan.depths[-1]
    return _Products(
        held=a if is_a else b,
        moving=b if is_a else a,
        held_is_a=is_a,
        depth=depth,
        bias=bias if is_last else None,
        before=None if depth == plan.depths[0] else sums,
        after=task.result if is_last or sums is None else sums,
    )


@dataclass(frozen=True)
class _Products:
    """The products over one part of the depth."""

    held: ProductOperand
    moving: ProductOperand
    held_is_a: bool
    depth: Span
    bias: ProductOperand | None
    before: ResultMatrix | None
    after: ResultMatrix

    def run(self, group: Sequence[Span], moving: Sequence[Span], slots: int) -> None:
        """All panels of a group times all moving panels."""
        first, *rest = moving
        # The first product begins before all panels of the group are loaded.
        panel = self._panel(self.moving, first, is_b=self.held_is_a)
        held, pending = list[_Panel](), list[tl.PendingResult]()
        for span in group:
            held.append(self._panel(self.held, span, is_b=not self.held_is_a))
            pending += self._start(held[-1:], panel)
        ring = [list[tl.PendingResult]() for _ in range(slots)]
        for start in range(0, len(rest), slots):
            # A slot has the same address in every turn of the ring, or a lower one, since no panel
            # is longer than the previous one. So the scope may end while products are in flight:
            # the panels that they read are not overwritten before they have been waited for.
            with tl.scratch():
                for slot, span in enumerate(rest[start : start + slots]):
                    _wait(ring[slot])
                    ring[slot] = self._start(held, self._panel(self.moving, span, self.held_is_a))
        for each in (pending, *ring):
            _wait(each)

    def _panel(self, operand: ProductOperand, span: Span, is_b: bool) -> _Panel:  # noqa: FBT001
        value = operand.load(span, self.depth)
        row = self.bias.load(span, (0, 1)) if is_b and self.bias is not None else None
        return _Panel(span, value, row)

    def _start(self, held: Sequence[_Panel], moving: _Panel) -> list[tl.PendingResult]:
        pending = list[tl.PendingResult]()
        for panel in held:
            a, b = (panel, moving) if self.held_is_a else (moving, panel)
            acc = None if self.before is None else self.before.load(a.span, b.span)
            out = self.after.ref(a.span, b.span)
            pending.append(tl.composite("gemm", a.value, b.value, out, acc=acc, bias=b.bias))
        return pending


def _wait(pending: Sequence[tl.PendingResult]) -> None:
    for each in pending:
        tl.wait(each)


def _turned(panels: Sequence[Span], first: int) -> list[Span]:
    """The panels from one of them on, the short ones last."""
    first %= len(panels)
    # Stable: equal lengths keep their order.
    return sorted([*panels[first:], *panels[:first]], key=lambda span: span[0] - span[1])
