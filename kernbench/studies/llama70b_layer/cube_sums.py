"""The sums of a product over the PEs of a cube: they exchange parts through their memories.

Each PE stores a part of its sums to every PE of the cube, and adds the parts that it has received.
"""

from collections.abc import Callable
from typing import NamedTuple

from kernbench import tl
from kernbench.studies.llama70b_layer.cube_barrier import cube_barrier
from kernbench.studies.llama70b_layer.projection_shape import Projection


class SummedPart(NamedTuple):
    """Where the sums lie that one PE has added up: the first token and column of the result."""

    token: int
    column: int


Epilogue = Callable[[tl.Value, tl.Value | None, SummedPart], tl.Value]
"""The result of sums (rows, columns), sums of squares (rows, 1), and their part."""


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

    def begin(self, token: int, column: int, squares: tl.Value | None) -> tl.Value:
        """Where the products (tokens, chunk) of the next step are added up."""
        flat = self._buffers[len(self._steps) % 2]
        self._steps.append(_ProductStep(token, column, flat, squares))
        return flat.reshape(self._shape.block, self._shape.chunk)

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
        """Where a PE of the cube receives the parts of a step."""
        index = (self._cube * self._shape.pes + pe) * 2 + number % 2
        return self._exchange + index * self._shape.slots

    def _send(self, number: int) -> None:
        shape, (rows, columns), step = self._shape, self._shape.part, self._steps[number]
        count, stores = rows * columns, list[tl.PendingResult]()
        for distance in range(shape.pes):
            pe = (self._pe + distance) % shape.pes
            slots = self._slots(pe, number)
            part = step.flat[pe * count : pe * count + count]
            start = slots + shape.pes * rows + self._pe * count
            stores.append(tl.store_async(start, part))
            if step.squares is not None:
                own = step.squares
                if shape.block > rows:
                    own = own[pe * rows : pe * rows + rows]
                stores.append(tl.store_async(slots + self._pe * rows, own))
        for store in stores:
            store.wait()

    def _receive(self, number: int) -> None:
        shape, (rows, columns), step = self._shape, self._shape.part, self._steps[number]
        slots = self._slots(self._pe, number)
        parts = tl.load_async(slots + shape.pes * rows, (shape.pes, rows * columns))
        squares = None
        if step.squares is not None:
            squares = tl.sum(tl.load(slots, (shape.pes, rows)), axis=0)[:, None]
        sums = tl.sum(parts.wait(), axis=0).reshape(rows, columns)
        part = self._part(step)
        result = self._epilogue(sums, squares, part)
        width = result.shape[1]
        column = part.column * width // columns
        for first, count in shape.out.runs(column, width):
            start = self._out + shape.out.start(part.token, column + first)
            tl.store(start, result[:, first : first + count], (shape.out_width, 1))

    def _part(self, step: _ProductStep) -> SummedPart:
        """The part of this PE: all rows and some columns, or some rows and all columns."""
        shape, (rows, columns) = self._shape, self._shape.part
        column = self._cube * shape.n + step.column
        if shape.block == rows:
            return SummedPart(step.token, column + self._pe * columns)
        return SummedPart(step.token + self._pe * rows, column)
