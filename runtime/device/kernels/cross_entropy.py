"""The kernels of cross entropy with class numbers: the loss in one launch, its gradient in one.

The loss of a row is the logarithm of the sum of its exponentials, its *level*, less the element of
its class, which the DMA gathers. Long rows come in panels of columns; maxima and sums of panels
combine as in online softmax.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from runtime.core.dtypes import DType
from runtime.device.kernels.bounds import IndexBounds
from runtime.device.kernels.conversions import in_type
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

    number: int
    row: int
    rows: int
    column: int
    columns: int


def cross_entropy(part: tuple[int, int, int, int], given: ClassRows, results: LossResults) -> None:
    """Kernel: the losses of the rows [first, last), for part (number, first, last, parts)."""
    number, first, last, parts = part
    total = tl.zeros((1, 2), given.wide)
    for row in range(first, last, _SECTION):
        with tl.scratch():
            _losses(given, results, (row, min(_SECTION, last - row)), total)
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
            level = tl.load(levels + row, (section[1], 1))
            _store_gradients(given, section, level, place, grad, out)


def _store_gradients(
    given: ClassRows,
    section: tuple[int, int],
    levels: tl.Value,
    place: tl.Value,
    grad: LossGradient,
    out: Pointer,
) -> None:
    """Store the gradients of a section; `place` numbers the elements of a panel."""
    classes, has_loss, _ = _classes(given, section)
    factors = _factors(given, section, has_loss, grad)
    buffers = [tl.empty((given.height * given.width,), out.dtype) for _ in range(2)]
    for panel, x in _panels(given, section):
        rows = slice(panel.row, panel.row + panel.rows)
        here = place[: panel.rows, : panel.columns]

        def chain(
            x: tl.Value, here: tl.Value, panel: _LossPanel = panel, rows: slice = rows
        ) -> tl.Value:
            own = classes[rows] - panel.column
            target = tl.where((own >= 0) & (own < panel.columns), own + here[:, :1], -1)
            powers = tl.exp(in_type(x, given.wide) - levels[rows])
            shares = tl.where(here == target, powers - 1.0, powers)
            return in_type(shares * factors[rows], out.dtype)

        result = buffers[panel.number % 2][: panel.rows * panel.columns]
        result = result.reshape(panel.rows, panel.columns)
        tl.fused_async(chain, x, here, out=result)
        target = out + ((section[0] + panel.row) * given.columns + panel.column)
        tl.store_async(target, result, (given.columns, 1))


def _losses(
    given: ClassRows, results: LossResults, section: tuple[int, int], total: tl.Value
) -> None:
    """Store the levels of a section, and its losses or add them to `total`."""
    row, count = section
    _, has_loss, picked = _classes(given, section)
    highest, sums = (tl.empty((count, 1), given.wide) for _ in range(2))
    lowest = float(given.wide.limits.min)
    for panel, x in _panels(given, section):
        rows = slice(panel.row, panel.row + panel.rows)
        state = (highest[rows], sums[rows])

        def chain(x: tl.Value, *before: tl.Value) -> tuple[tl.Value, tl.Value]:
            wide = in_type(x, given.wide)
            # Finite where all elements so far are minus infinity: their exponentials are 0.
            level = tl.maximum(tl.max(wide, 1, keep_dims=True), lowest)
            level = tl.maximum(before[0], level) if before else level
            added = tl.sum(tl.exp(wide - level), 1, keep_dims=True)
            return level, tl.fma(before[1], tl.exp(before[0] - level), added) if before else added

        tl.fused_async(chain, x, *(state if panel.column else ()), out=state)

    def levels(highest: tl.Value, sums: tl.Value, picked: tl.Value) -> tuple[tl.Value, tl.Value]:
        level = highest + tl.log(sums)
        return level, tl.where(has_loss, level - in_type(picked, given.wide), 0.0)

    level, losses = tl.fused(levels, highest, sums, picked)
    stores = [tl.store_async(results.levels + row, level)]
    if results.losses is not None:
        rounded = in_type(losses, results.losses.dtype)
        stores.append(tl.store_async(results.losses + row, rounded))
    else:
        counted = tl.sum(has_loss.to(given.wide), 0, keep_dims=True)
        for index, added in enumerate((tl.sum(losses, 0, keep_dims=True), counted)):
            part = total[:, index : index + 1]
            tl.fused(tl.add, part, added, out=part)
    for each in stores:
        each.wait()


def _classes(given: ClassRows, section: tuple[int, int]) -> tuple[tl.Value, tl.Value, tl.Value]:
    """Class of each row, -1 without a loss; whether it has one; the element of its class."""
    row, count = section
    targets = tl.load(given.targets + row, (count,))
    has_loss = targets != given.ignored
    given.bounds.check(targets, row)
    chosen = tl.where(has_loss, targets, 0)
    numbers = tl.arange(row, row + count, tl.int64) * given.pitch + chosen
    if numbers.data is None and targets.data is not None:
        # A run without data computes no values, and the rows of a gather are addresses.
        classes = np.where(targets.data == given.ignored, 0, targets.data)
        numbers.data = np.arange(row, row + count) * given.pitch + classes
    picked = tl.gather(given.logits, numbers, (1,), (1, 1))
    classes = tl.where(has_loss, targets, -1).to(tl.int32)
    return classes[:, None], has_loss[:, None], picked


def _factors(
    given: ClassRows, section: tuple[int, int], has_loss: tl.Value, grad: LossGradient
) -> tl.Value:
    """The gradient of the loss of each row."""
    row, rows = section
    source, shape = (grad.pointer + row, (rows, 1)) if grad.is_of_rows else (grad.pointer, (1, 1))
    own = in_type(tl.load(source, shape), given.wide)
    if grad.counted is not None:
        own = own / tl.load(grad.counted, (1, 1))
    return tl.where(has_loss, own, 0.0)


def _panels(given: ClassRows, section: tuple[int, int]) -> Iterator[tuple[_LossPanel, tl.Value]]:
    """The panels of a section with their elements; the next ones are loaded in advance."""
    start, count = section
    panels = [
        (row, min(given.height, count - row), column, min(given.width, given.columns - column))
        for row in range(0, count, given.height)
        for column in range(0, given.columns, given.width)
    ]
    buffers = [tl.empty((given.height * given.width,), given.logits.dtype) for _ in range(3)]
    ahead: list[tl.PendingValue] = []
    for number in range(len(panels) + 2):
        if number < len(panels):
            row, rows, column, columns = panels[number]
            out = buffers[number % 3][: rows * columns].reshape(rows, columns)
            source = given.logits + ((start + row) * given.pitch + column)
            ahead.append(tl.load_async(source, (rows, columns), (given.pitch, 1), out=out))
        if number >= 2:
            yield _LossPanel(number - 2, *panels[number - 2]), ahead[number - 2].wait()
