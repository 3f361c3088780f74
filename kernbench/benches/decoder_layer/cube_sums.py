"""A barrier of the PEs of a cube, and the sums of a product over them, by messages between them.

Each PE stores a part of its sums to every PE of the cube, and adds the parts that it has received.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kernbench import tl
from kernbench.benches.decoder_layer.shape import Activations, Projection


def cube_barrier(pes: int) -> None:
    """Wait until all `pes` PEs of the cube, a power of 2, have called it.

    In round b a PE exchanges a message with the PE whose number differs in bit b, as in recursive
    doubling; after log2(pes) rounds it depends on all. Queues: `hypercube`.
    """
    with tl.scratch():
        token = tl.zeros(1, tl.int32)
        for bit in range((pes - 1).bit_length()):
            direction = f"bit_{bit}"
            tl.send(direction, token)
            tl.recv(direction, 1, tl.int32)


class SummedPart(NamedTuple):
    """The sum of one PE: its number in the order (cube, PE, step), and its first token and column
    in the result.
    """

    number: int
    token: int
    column: int


Epilogue = Callable[[tl.Value, tl.Value | None, SummedPart], tl.Value]
"""The result of sums (panels, rows, columns of a panel), sums of squares (rows), and their part."""


class _ProductStep(NamedTuple):
    """The products of a block of tokens from `token` on with a chunk of columns of a cube.

    `flat` has the elements of `sums`; `squares` are those of the block's rows, if they are needed.
    """

    token: int
    column: int
    flat: tl.Value
    squares: tl.Value | None


class CubeSums:
    """Two steps in flight: the sums of one are computed while those of the other are exchanged."""

    def __init__(
        self, exchange: tl.Pointer, out: tl.Pointer, epilogue: Epilogue, shape: Projection
    ) -> None:
        self._exchange, self._out = exchange, out
        self._epilogue, self._shape = epilogue, shape
        self._pe, self._cube = tl.program_id(0), tl.program_id(1)
        count = min(2, shape.steps)
        self._buffers = [tl.empty(shape.block * shape.chunk, tl.float32) for _ in range(count)]
        self._steps = list[_ProductStep]()
        self._exchanged = 0

    def begin(self, token: int, column: int, squares: tl.Value | None) -> list[tl.Value]:
        """Buffers for the sums of the products of the next step: its panels (tokens, width).

        Panels lie behind one another: a product would wait for another one between its rows.
        """
        flat, shape = self._buffers[len(self._steps) % 2], self._shape
        self._steps.append(_ProductStep(token, column, flat, squares))
        size = shape.block * shape.width
        return [
            flat[panel * size : panel * size + size].reshape(shape.block, shape.width)
            for panel in shape.panels
        ]

    def exchange_all_but_last(self) -> None:
        """Complete the results of the steps before the last one."""
        while self._exchanged < len(self._steps) - 1:
            self.exchange_last()

    def exchange_last(self) -> None:
        """Complete the results of the next step."""
        number = self._exchanged
        self._send(number)
        cube_barrier(self._shape.pes)
        with tl.scratch():
            self._receive(number)
        self._exchanged += 1

    def _slots(self, pe: int, number: int) -> tl.Pointer:
        """The slots in which a PE of the cube receives the parts of a step."""
        index = (self._cube * self._shape.pes + pe) * 2 + number % 2
        return self._exchange + index * self._shape.slots

    def _send(self, number: int) -> None:
        shape, (panels, rows, columns), step = self._shape, self._shape.part, self._steps[number]
        count, stores = panels * rows * columns, list[tl.PendingResult]()
        for distance in range(shape.pes):
            pe = (self._pe + distance) % shape.pes
            slots = self._slots(pe, number)
            if self._shape.has_all_rows:
                part = step.flat[pe * count : pe * count + count]
            else:
                part = step.flat.reshape(panels, shape.block, columns)[:, pe * rows :][:, :rows]
            start = slots + shape.pes * rows + self._pe * count
            stores.append(tl.store_async(start, part))
            if step.squares is not None:
                own = step.squares
                if not self._shape.has_all_rows:
                    own = own[pe * rows : pe * rows + rows]
                stores.append(tl.store_async(slots + self._pe * rows, own))
        for store in stores:
            store.wait()

    def _receive(self, number: int) -> None:
        shape, (panels, rows, columns), step = self._shape, self._shape.part, self._steps[number]
        slots, count = self._slots(self._pe, number), panels * rows * columns
        parts = tl.load_async(slots + shape.pes * rows, (shape.pes, count))
        squares = None
        if step.squares is not None:
            squares = tl.sum(tl.load(slots, (shape.pes, rows)), axis=0)
        sums = tl.sum(parts.wait(), axis=0).reshape(panels, rows, columns)
        part = self._part(number)
        result = self._epilogue(sums, squares, part)
        column = part.column * result.shape[2] // columns
        for piece, start, strides in blocks_of(shape.out, result, part.token, column):
            tl.store(self._out + start, piece, strides)

    def _part(self, number: int) -> SummedPart:
        """The part of this PE of a step."""
        step = self._steps[number]
        token, column = self._shape.first(step.token, step.column, self._cube, self._pe)
        place = (self._cube * self._shape.pes + self._pe) * self._shape.steps + number
        return SummedPart(place, token, column)


def blocks_of(
    layout: Activations, value: tl.Value, token: int, column: int
) -> Iterator[tuple[tl.Value, int, tuple[int, int, int]]]:
    """The blocks of a `value` (panels, rows, columns of a panel) that lie in one panel of `layout`
    each; with the index of their first element, and strides. The value begins at `token`, `column`.
    """
    panels, _, columns = value.shape
    for first, count in layout.runs(column, panels * columns):
        if panels == 1:
            block = value[:, :, first : first + count]
        else:
            block = value[first // columns : (first + count) // columns]
        yield block, layout.start(token, column + first), (columns, layout.width, 1)
