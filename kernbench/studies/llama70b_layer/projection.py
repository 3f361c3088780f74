"""Matrix products of a layer on all PEs of a SIP: every PE reads its own part of the weight once.

The weight is loaded in panels, which pass through a ring of buffers while the GEMM engine works on
earlier ones. The PEs of a cube then add up their products through shared memory: each one stores a
part of its sums to every other one, and adds the parts that it has received. With several steps
(blocks of tokens, chunks of columns) the exchange of one step runs beside the products of the next.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kernbench import tl
from kernbench.studies.llama70b_layer.cube_barrier import cube_barrier
from kernbench.studies.llama70b_layer.shape import PANEL, Projection

BUFFERS = 4
"""Panels of the weight in TCM: two in use, the others on their way."""
PANEL_ROWS = 1024
"""Most rows of a panel."""
DECODE_ROWS, DECODE_PANELS = 256, 16
"""A product of one token has shorter panels, but not below 256 rows, if there are fewer panels
than these: the last one is multiplied when nothing is loaded any more.
"""
EPSILON = 1e-5
"""In the root mean square, as in Llama 2."""


class Operand(NamedTuple):
    """(tokens, k) elements; if rows are normalised, the sum of squares of each one."""

    x: tl.Value
    squares: tl.Value | None = None


class SummedPart(NamedTuple):
    """Where the sums lie that one PE has added up: the first token and column of the result."""

    token: int
    column: int


Source = Callable[[int], Operand]
"""The operand of a block of tokens, by the number of its first token."""
Epilogue = Callable[[tl.Value, tl.Value | None, SummedPart], tl.Value]
"""The result of sums (rows, columns), sums of squares (rows, 1), and their part."""


class Memory(NamedTuple):
    """Weight, buffers of the exchange and result of a projection."""

    weight: tl.Pointer
    exchange: tl.Pointer
    out: tl.Pointer


def project(
    x: tl.Pointer,
    weight: tl.Pointer,
    exchange: tl.Pointer,
    out: tl.Pointer,
    shape: Projection,
    residual: tl.Pointer | None = None,
) -> None:
    """Kernel: out = x @ weight, plus `residual` if it is given, in float16."""
    row, held = tl.program_id(0) * shape.k, list[tl.Value]()

    def source(token: int) -> Operand:
        start, old = x + shape.x.start(token, row), held[0] if held else None
        held[:] = [tl.load(start, (shape.block, shape.k), out=old)]
        return Operand(held[0])

    def epilogue(sums: tl.Value, _squares: tl.Value | None, part: SummedPart) -> tl.Value:
        if residual is None:
            return sums.to(tl.float16)
        added = tl.empty(sums.shape, tl.float16)
        loads = [
            tl.load_async(
                residual + shape.out.start(part.token, part.column + first),
                (added.shape[0], count),
                (shape.out_width, 1),
                out=added[:, first : first + count],
            )
            for first, count in shape.out.runs(part.column, sums.shape[1])
        ]
        for load in loads:
            load.wait()
        return tl.fused(lambda a, b: (a + b.to(tl.float32)).to(tl.float16), sums, added)

    _run(shape, Memory(weight, exchange, out), source, epilogue)


def project_rotated(  # noqa: PLR0913, PLR0917 - the arguments of a launch are positional
    x: tl.Pointer,
    gain: tl.Pointer,
    weight: tl.Pointer,
    exchange: tl.Pointer,
    out: tl.Pointer,
    cosines: tl.Pointer,
    sines: tl.Pointer,
    shape: Projection,
) -> None:
    """Kernel: out = rotated(norm(x) @ weight).

    `cosines` and `sines` (tokens, columns / 2) rotate each pair of adjacent columns, in float32.
    """
    half = shape.columns // 2

    def epilogue(sums: tl.Value, squares: tl.Value | None, part: SummedPart) -> tl.Value:
        rows, columns = sums.shape
        start, block = part.token * half + part.column // 2, (rows, columns // 2, 1)
        cos = tl.load_async(cosines + start, block, (half, 1, 1))
        sin = tl.load_async(sines + start, block, (half, 1, 1))
        result = tl.zeros((rows, columns // 2, 2), tl.float16)
        pairs = sums.reshape(rows, columns // 2, 2)

        def even(a: tl.Value, b: tl.Value, c: tl.Value, s: tl.Value, r: tl.Value) -> tl.Value:
            return ((a * c - b * s) * r).to(tl.float16)

        def odd(a: tl.Value, b: tl.Value, c: tl.Value, s: tl.Value, r: tl.Value) -> tl.Value:
            return ((a * s + b * c) * r).to(tl.float16)

        operands = pairs[:, :, 0:1], pairs[:, :, 1:2], cos.wait(), sin.wait()
        norm = _norm(squares, shape)[:, :, None]
        tl.fused(even, *operands, norm, out=result[:, :, 0:1])
        tl.fused(odd, *operands, norm, out=result[:, :, 1:2])
        return result.reshape(rows, columns)

    source = _normalised(x, gain, shape)
    _run(shape, Memory(weight, exchange, out), source, epilogue)


def project_gated(  # noqa: PLR0917 - the arguments of a launch are positional
    x: tl.Pointer,
    gain: tl.Pointer,
    weight: tl.Pointer,
    exchange: tl.Pointer,
    out: tl.Pointer,
    shape: Projection,
) -> None:
    """Kernel: out = silu(gate) * up; gate and up are the even and the odd columns of norm(x) @
    weight.
    """

    def epilogue(sums: tl.Value, squares: tl.Value | None, _part: SummedPart) -> tl.Value:
        rows, columns = sums.shape
        pairs = sums.reshape(rows, columns // 2, 2)

        def chain(gate: tl.Value, up: tl.Value, scale: tl.Value) -> tl.Value:
            return (tl.silu(gate * scale) * (up * scale)).to(tl.float16)

        result = tl.fused(
            chain, pairs[:, :, 0:1], pairs[:, :, 1:2], _norm(squares, shape)[:, :, None]
        )
        return result.reshape(rows, columns // 2)

    source = _normalised(x, gain, shape)
    _run(shape, Memory(weight, exchange, out), source, epilogue)


def _norm(squares: tl.Value | None, shape: Projection) -> tl.Value:
    """1 / rms of each row, (rows, 1)."""
    assert squares is not None

    def chain(sums: tl.Value) -> tl.Value:
        return tl.rsqrt(tl.fma(sums, 1 / shape.depth, EPSILON))

    return tl.fused(chain, squares)


def _normalised(x: tl.Pointer, gain: tl.Pointer, shape: Projection) -> Source:
    """x times gain, with the squares of x: a row is divided by its norm behind the product, so that
    products need not wait for the columns of other PEs.
    """
    first, held = tl.program_id(0) * shape.k, list[tl.Value]()
    row = tl.load_async(gain + first, (1, shape.k))

    def chain(a: tl.Value, g: tl.Value) -> tuple[tl.Value, ...]:
        wide = a.to(tl.float32)
        return a * g, tl.sum(wide * wide, axis=1, keep_dims=True)

    def source(token: int) -> Operand:
        start, old = x + shape.x.start(token, first), held[0] if held else None
        held[:] = [tl.load(start, (shape.block, shape.k), out=old)]
        return Operand(*tl.fused(chain, held[0], row.wait(), out=(held[0], None)))

    return source


class _ProductStep(NamedTuple):
    """The products of a block of tokens and a chunk of columns."""

    token: int
    column: int


def _run(shape: Projection, memory: Memory, source: Source, epilogue: Epilogue) -> None:
    steps = [
        _ProductStep(token, column)
        for token in range(0, shape.tokens, shape.block)
        for column in range(0, shape.n, shape.chunk)
    ]
    panels = _Panels(shape, memory.weight, len(range(0, shape.tokens, shape.block)))
    exchange = _Exchange(shape, memory, epilogue)
    operand: Operand | None = None
    for number, step in enumerate(steps):
        if step.column == 0:
            operand = source(step.token)
        assert operand is not None
        sums = exchange.sums(number)
        for place, (first, width) in enumerate(_panels_of(shape)):
            for row in range(0, shape.k, panels.rows):
                x = operand.x[:, row : row + panels.rows]
                target = sums[:, first : first + width]
                panels.multiply(x, target, is_first=row == 0)
            if place == 0 and number:
                exchange.send(number - 1)
            if place == 1 and number:
                exchange.receive(number - 1, steps[number - 1])
        exchange.squares[number % 2] = operand.squares
    exchange.send(len(steps) - 1)
    exchange.receive(len(steps) - 1, steps[-1])


def _panels_of(shape: Projection) -> list[tuple[int, int]]:
    """First column and width of the panels of a chunk."""
    return [(first, min(PANEL, shape.chunk - first)) for first in range(0, shape.chunk, PANEL)]


def _panel_rows(shape: Projection) -> int:
    """The rows of a panel: all are equal, and whole tiles if possible."""
    tile = tl.gemm_tile().k
    whole = [each for each in range(tile, shape.k + 1, tile) if not shape.k % each] or [shape.k]
    fitting = [each for each in whole if each <= PANEL_ROWS]
    if shape.block > 1:
        return fitting[-1]
    across = shape.n // PANEL
    enough = [each for each in fitting if shape.k // each * across >= DECODE_PANELS]
    least = [each for each in fitting if each >= DECODE_ROWS] or fitting[-1:]
    return max(enough[-1], least[0]) if enough else least[0]


class _Panels:
    """The panels of the weight in the order of their use, loaded ahead of it."""

    def __init__(self, shape: Projection, weight: tl.Pointer, passes: int) -> None:
        self.rows = _panel_rows(shape)
        pe = tl.program_id(1) * shape.pes + tl.program_id(0)
        self._start = weight + pe * shape.k * shape.n
        self._blocks = self._in_order(shape, passes)
        self._loads = list[tl.PendingValue]()
        self._products = list[tl.PendingResult]()
        for _ in range(BUFFERS - 1):
            self._load()

    def _in_order(self, shape: Projection, passes: int) -> Iterator[tuple[int, int]]:
        """(first element, width) of every panel."""
        for _ in range(passes):
            start = 0
            for _ in range(0, shape.n, shape.chunk):
                for _, width in _panels_of(shape):
                    for _ in range(0, shape.k, self.rows):
                        yield start, width
                        start += self.rows * width

    def multiply(self, x: tl.Value, out: tl.Value, *, is_first: bool) -> None:
        """Start the product of `x` and the next panel, which is added to `out` unless it is the
        first; the load of another panel begins.
        """
        if self._products:
            self._load()
        panel = self._loads[len(self._products)].wait()
        self._products.append(tl.composite("gemm", x, panel, out, acc=None if is_first else out))

    def _load(self) -> None:
        block = next(self._blocks, None)
        if block is None:
            return
        start, width = block
        number = len(self._loads)
        out = None
        if number >= BUFFERS:
            # The last product but one; the engine has another one meanwhile.
            self._products[number - BUFFERS].wait()
            old = self._loads[number - BUFFERS].wait()
            out = old if old.shape == (self.rows, width) else None
        self._loads.append(tl.load_async(self._start + start, (self.rows, width), out=out))


class _Exchange:
    """Sums of two steps: one is being computed while the other is exchanged."""

    def __init__(self, shape: Projection, memory: Memory, epilogue: Epilogue) -> None:
        self._shape, self._memory = shape, memory
        self._epilogue = epilogue
        self._pe, self._cube = tl.program_id(0), tl.program_id(1)
        steps = shape.tokens // shape.block * (shape.n // shape.chunk)
        self._sums = [tl.zeros(shape.block * shape.chunk, tl.float32) for _ in range(min(2, steps))]
        self.squares: list[tl.Value | None] = [None, None]
        self._stores = list[tl.PendingResult]()

    def sums(self, number: int) -> tl.Value:
        """The sums (tokens, columns) of a step."""
        return self._sums[number % 2].reshape(self._shape.block, self._shape.chunk)

    def _slots(self, pe: int, number: int) -> tl.Pointer:
        """Where a PE of the cube receives the parts of a step."""
        index = (self._cube * self._shape.pes + pe) * 2 + number % 2
        return self._memory.exchange + index * self._shape.slots

    def send(self, number: int) -> None:
        """Store the part of each PE of the cube in its memory."""
        shape, (rows, columns) = self._shape, self._shape.part
        count, squares = rows * columns, self.squares[number % 2]
        for step in range(shape.pes):
            pe = (self._pe + step) % shape.pes
            slots = self._slots(pe, number)
            part = self._sums[number % 2][pe * count : pe * count + count]
            start = shape.pes * rows + self._pe * count
            self._stores.append(tl.store_async(slots + start, part))
            if squares is not None:
                own = squares[pe * rows : pe * rows + rows] if shape.block > rows else squares
                self._stores.append(tl.store_async(slots + self._pe * rows, own))

    def receive(self, number: int, step: _ProductStep) -> None:
        """Add the parts of all PEs of the cube, and store the result of this one."""
        shape, (rows, columns) = self._shape, self._shape.part
        for store in self._stores:
            store.wait()
        self._stores.clear()
        cube_barrier(shape.pes)
        slots = self._slots(self._pe, number)
        is_split = shape.block == rows
        part = SummedPart(
            step.token + (0 if is_split else self._pe * rows),
            self._cube * shape.n + step.column + (self._pe * columns if is_split else 0),
        )
        with tl.scratch():
            parts = tl.load_async(slots + shape.pes * rows, (shape.pes, rows * columns))
            squares = None
            if self.squares[number % 2] is not None:
                squares = tl.sum(tl.load(slots, (shape.pes, rows)), axis=0)[:, None]
            sums = tl.sum(parts.wait(), axis=0).reshape(rows, columns)
            result = self._epilogue(sums, squares, part)
            width = result.shape[1]
            column = part.column * width // columns
            for first, count in shape.out.runs(column, width):
                start = self._memory.out + shape.out.start(part.token, column + first)
                tl.store(start, result[:, first : first + count], (shape.out_width, 1))
