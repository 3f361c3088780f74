"""The kernels of cross entropy with class numbers: the loss in one launch, its gradient in one.

The loss of a row is the logarithm of the sum of its exponentials, its *level*, less the element of
its class, which the DMA gathers. Long rows come in panels of columns; maxima and sums of panels
combine as in online softmax.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from runtime.core.dtypes import DType
from runtime.device.kernels.bounds import IndexBounds
from runtime.device.kernels.conversions import in_type
from runtime.device.kernels.streamed import SIDE_BY_SIDE, BlockRing, streamed
from runtime.language import tl
from runtime.language.value import Pointer

_SECTION = 1024
"""The rows whose classes, levels and losses are in the scratch at once."""


class ClassRows(NamedTuple):
    """Rows of `columns` elements at a `pitch`, and how a PE takes them: `height` rows and `width`
    columns at once, in the type `wide`. Rows of the class `ignored` have no loss; the others are
    within `bounds`.
    """

    logits: Pointer
    targets: Pointer
    columns: int
    pitch: int
    height: int
    width: int
    wide: DType
    ignored: int
    bounds: IndexBounds


@dataclass(frozen=True)
class LossResults:
    """The levels of rows; the losses of rows, or sum and count of each PE, then the loss and the
    number of rows that have one.
    """

    levels: Pointer
    losses: Pointer | None
    partial: Pointer
    loss: Pointer
    counted: Pointer
    is_mean: bool


@dataclass(frozen=True)
class LossGradient:
    """The gradient of each row's loss, or of all; of a mean, over the rows at `counted`."""

    pointer: Pointer
    is_of_rows: bool
    counted: Pointer | None


class _LossPanel(NamedTuple):
    """Rows and columns of a section."""

    row: int
    rows: int
    column: int
    columns: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.columns


def cross_entropy(part: tuple[int, int, int, int], given: ClassRows, results: LossResults) -> None:
    """Kernel: the losses of the rows [first, last), for part (number, first, last, parts)."""
    number, first, last, parts = part
    total = tl.zeros((1, 2), given.wide)
    for row in range(first, last, _SECTION):
        with tl.scratch():
            section = row, min(_SECTION, last - row)
            _LossSection(given, section, results, total).run()
    if results.losses is not None:
        return
    tl.store(results.partial + 2 * number, total)
    tl.barrier()
    if number:
        return
    sums = tl.sum(tl.load(results.partial, (parts, 2)), 0, keep_dims=True)
    loss, count = sums[:, :1], sums[:, 1:]
    result = loss / count if results.is_mean else loss
    tl.store(results.loss, in_type(result, results.loss.dtype))
    tl.store(results.counted, count)


def gradient(
    part: tuple[int, int],
    given: ClassRows,
    levels: Pointer,
    grad: LossGradient,
    out: Pointer,
) -> None:
    """Kernel: the gradient of the rows [first, last), stored without gaps."""
    first, last = part
    shape = given.height, given.width
    place = tl.arange(0, given.height * given.width, tl.int32).reshape(shape)
    for row in range(first, last, _SECTION):
        with tl.scratch():
            section = row, min(_SECTION, last - row)
            _GradientSection(given, section, levels, grad, out, place).run()


class _ClassSection:
    """A section of rows, of which the loads of classes and of the first panels start at once."""

    def __init__(self, given: ClassRows, section: tuple[int, int]) -> None:
        self._given = given
        self._start, self._count = section
        self._targets = tl.load_async(given.targets + self._start, (self._count,))
        self._panels = [
            _LossPanel(
                row,
                min(given.height, self._count - row),
                column,
                min(given.width, given.columns - column),
            )
            for row in range(0, self._count, given.height)
            for column in range(0, given.columns, given.width)
        ]
        slots = SIDE_BY_SIDE.slots(0, SIDE_BY_SIDE.behind(0))
        self._ring = BlockRing(slots, given.height * given.width, given.logits.dtype)
        self._loads: dict[int, tl.PendingValue] = {}

    def _load(self, index: int) -> None:
        panel, given = self._panels[index], self._given
        source = given.logits + ((self._start + panel.row) * given.pitch + panel.column)
        out = self._ring.of(index, panel.shape)
        self._loads[index] = tl.load_async(source, panel.shape, (given.pitch, 1), out=out)

    def _loaded(self, index: int) -> tl.Value:
        return self._loads.pop(index).wait()

    @cached_property
    def _checked(self) -> tuple[tl.Value, tl.Value]:
        """The targets, and which of the rows have a loss."""
        targets = self._targets.wait()
        has_loss = targets != self._given.ignored
        self._given.bounds.check(targets, self._start)
        return targets, has_loss


class _LossSection(_ClassSection):
    """Stores the levels of a section, and its losses or adds them to a total."""

    def __init__(
        self,
        given: ClassRows,
        section: tuple[int, int],
        results: LossResults,
        total: tl.Value,
    ) -> None:
        super().__init__(given, section)
        self._results, self._total = results, total
        self._highest, self._sums = (tl.empty((self._count, 1), given.wide) for _ in range(2))
        self._picked: tl.PendingValue | None = None

    def run(self) -> None:
        streamed(len(self._panels), SIDE_BY_SIDE, self._load, [self._compute], lambda _: None)
        _, has_loss = self._checked
        assert self._picked is not None, "a section has rows"
        wide, is_counted = self._given.wide, has_loss[:, None]

        def levels(
            highest: tl.Value, sums: tl.Value, picked: tl.Value
        ) -> tuple[tl.Value, tl.Value]:
            level = highest + tl.log(sums)
            return level, tl.where(is_counted, level - in_type(picked, wide), 0.0)

        level, losses = tl.fused(levels, self._highest, self._sums, self._picked.wait())
        stores = [tl.store_async(self._results.levels + self._start, level)]
        if self._results.losses is not None:
            rounded = in_type(losses, self._results.losses.dtype)
            stores.append(tl.store_async(self._results.losses + self._start, rounded))
        else:
            counted = tl.sum(is_counted.to(wide), 0, keep_dims=True)
            for index, added in enumerate((tl.sum(losses, 0, keep_dims=True), counted)):
                part = self._total[:, index : index + 1]
                tl.fused(tl.add, part, added, out=part)
        for each in stores:
            each.wait()

    def _compute(self, index: int) -> None:
        panel, given, x = self._panels[index], self._given, self._loaded(index)
        rows = slice(panel.row, panel.row + panel.rows)
        state = (self._highest[rows], self._sums[rows])
        lowest = float(given.wide.limits.min)

        def chain(x: tl.Value, *before: tl.Value) -> tuple[tl.Value, tl.Value]:
            wide = in_type(x, given.wide)
            # Finite where all elements so far are minus infinity: their exponentials are 0.
            level = tl.maximum(tl.max(wide, 1, keep_dims=True), lowest)
            level = tl.maximum(before[0], level) if before else level
            added = tl.sum(tl.exp(wide - level), 1, keep_dims=True)
            return level, tl.fma(before[1], tl.exp(before[0] - level), added) if before else added

        tl.fused_async(chain, x, *(state if panel.column else ()), out=state)
        if not index:
            self._pick()

    def _pick(self) -> None:
        """Start to gather the element of each row's class, beside the panels."""
        (targets, has_loss), given = self._checked, self._given
        end = self._start + self._count
        chosen = tl.where(has_loss, targets, 0)
        numbers = tl.arange(self._start, end, tl.int64) * given.pitch + chosen
        if numbers.data is None and targets.data is not None:
            # A run without data computes no values, and the rows of a gather are addresses.
            classes = np.where(targets.data == given.ignored, 0, targets.data)
            numbers.data = np.arange(self._start, end) * given.pitch + classes
        self._picked = tl.gather_async(given.logits, numbers, (1,), (1, 1))


class _GradientSection(_ClassSection):
    """Stores the gradients of a section; `place` numbers the elements of a panel."""

    def __init__(
        self,
        given: ClassRows,
        section: tuple[int, int],
        levels: Pointer,
        grad: LossGradient,
        out: Pointer,
        place: tl.Value,
    ) -> None:
        super().__init__(given, section)
        self._out, self._place = out, place
        self._levels = tl.load_async(levels + self._start, (self._count, 1))
        is_of_rows = grad.is_of_rows
        self._grad = tl.load_async(
            grad.pointer + (self._start if is_of_rows else 0), (self._count if is_of_rows else 1, 1)
        )
        self._counted = None if grad.counted is None else tl.load_async(grad.counted, (1, 1))
        self._results = BlockRing(2, given.height * given.width, out.dtype)
        self._stores: list[tl.PendingResult] = []

    def run(self) -> None:
        streamed(len(self._panels), SIDE_BY_SIDE, self._load, [self._compute], self._store)

    @cached_property
    def _rows(self) -> tuple[tl.Value, tl.Value, tl.Value]:
        """Class of each row, -1 without a loss; its level; the gradient of its loss."""
        targets, has_loss = self._checked
        classes = tl.where(has_loss, targets, -1).to(tl.int32)
        factors = in_type(self._grad.wait(), self._given.wide)
        if self._counted is not None:
            factors = factors / self._counted.wait()
        factors = tl.where(has_loss[:, None], factors, 0.0)
        return classes[:, None], self._levels.wait(), factors

    def _compute(self, index: int) -> None:
        panel, given, x = self._panels[index], self._given, self._loaded(index)
        rows = slice(panel.row, panel.row + panel.rows)
        classes, levels, factors = (each[rows] for each in self._rows)

        def chain(x: tl.Value, here: tl.Value) -> tl.Value:
            own = classes - panel.column
            target = tl.where((own >= 0) & (own < panel.columns), own + here[:, :1], -1)
            shares = tl.exp(in_type(x, given.wide) - levels)
            # The share less 1 at the class, times the factor, is rounded once.
            own_class = tl.where(here == target, factors * -1.0, 0.0)
            return in_type(tl.fma(shares, factors, own_class), self._out.dtype)

        here = self._place[: panel.rows, : panel.columns]
        tl.fused_async(chain, x, here, out=self._results.of(index, panel.shape))

    def _store(self, index: int) -> None:
        for each in self._stores:
            each.wait()
        panel, columns = self._panels[index], self._given.columns
        target = self._out + ((self._start + panel.row) * columns + panel.column)
        self._stores = [tl.store_async(target, self._results.of(index, panel.shape), (columns, 1))]
