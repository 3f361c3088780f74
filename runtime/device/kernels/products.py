"""The kernel behind `matmul`: the products of one PE."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from runtime.device.products.product_operands import ProductOperand
from runtime.device.products.product_plan import ScratchPlan
from runtime.language import tl
from runtime.language.value import Pointer, Ref, Value
from runtime.model.placement import Span


@dataclass(frozen=True)
class ResultMatrix:
    """Where a matrix of the result is written: element (0, 0) would be at `pointer`."""

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
    ones, so that they load from different slices.
    """

    plan: ScratchPlan
    result: ResultMatrix
    turn: int


class _Panel(NamedTuple):
    span: Span
    value: Value
    bias: Value | None


def multiply(
    tasks: Sequence[ProductTask],
    a: ProductOperand,
    b: ProductOperand,
    sums: ResultMatrix | None,
    bias: ProductOperand | None,
) -> None:
    """Kernel: blocks of the result `a @ b + bias`.

    `sums` holds the sums between the parts of the depth, if there are several.
    """
    for task in tasks:
        for depth in task.plan.depths:
            products = _products(task, a, b, sums, bias, depth)
            for group in task.plan.groups:
                with tl.scratch():
                    products.run(group, _turned(task.plan.moving, task.turn), task.plan.slots)


def _products(
    task: ProductTask,
    a: ProductOperand,
    b: ProductOperand,
    sums: ResultMatrix | None,
    bias: ProductOperand | None,
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
