"""Matrix products of a layer on all PEs of a SIP: every PE reads its own part of the weight once.

The products of a step (a block of tokens, a chunk of columns) are queued at the GEMM engine, and
run while the sums of the step before are exchanged in the cube (`cube_sums`), panels of the weight
are on their way in the order of their use, and the next block of tokens is loaded.
"""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import NamedTuple

from kernbench import tl
from kernbench.benches.decoder_layer.cube_sums import (
    CubeSums,
    Epilogue,
    SummedPart,
    blocks_of,
)
from kernbench.benches.decoder_layer.shape import ITEM_BYTES, Projection

EARLY = 3
"""Panels that are loaded before the operand has arrived: more would delay the loads of operands
from the same memory.
"""
BUFFERS = 16
"""Most panels in TCM: in use, queued at the GEMM engine, or on their way."""
PANEL_ROWS = 1024
"""Most rows of a panel; half as many for a product of one token, which is as short as its loads."""
SCRATCH_BYTES = 800 << 10
"""TCM for operands, sums and panels: the rest of 1 MiB is for the exchange of sums."""
DECODE_ROWS, DECODE_PANELS = 256, 16
"""A product of one token has shorter panels, but not below 256 rows, if there are fewer panels
than these: the last one is multiplied when nothing is loaded any more.
"""


class WeightPanels:
    """A ring of `BUFFERS` panels between the memory and the GEMM engine."""

    def __init__(self, weight: tl.Pointer, shape: Projection) -> None:
        self._shape, self._rows = shape, panel_rows(shape, tl.gemm_tile().k)
        pe = tl.program_id(1) * shape.pes + tl.program_id(0)
        self._start = weight + pe * shape.k * shape.n
        self._panels = list(self._in_order())
        self._loads = list[tl.PendingValue]()
        self._products = 0
        most = BUFFERS if shape.block > 1 else EARLY + 1
        free = SCRATCH_BYTES - shape.operand_bytes - shape.sums_bytes
        self._buffers = min(most, max(EARLY + 1, free // (self._rows * shape.width * ITEM_BYTES)))
        for _ in range(min(EARLY, len(self._panels))):
            self._load()

    def multiply(self, x: tl.Value, panels: Sequence[tl.Value]) -> None:
        """Queue x @ the next chunk of the weight into its `panels`, (tokens, width) each.

        Returns when the panels of the chunk are in TCM.
        """
        for row in range(0, self._shape.k, self._rows):
            for target in panels:
                # Half of the buffers are ahead of the products, half behind them: these may wait at
                # the engine while the kernel exchanges sums.
                ahead = self._products + self._buffers // 2
                while len(self._loads) < min(ahead, len(self._panels)):
                    self._load()
                panel = self._loads[self._products].wait()
                operand = x[:, row : row + self._rows]
                acc = target if row else None
                tl.composite("gemm", operand, panel, target, acc=acc)
                self._products += 1

    def _in_order(self) -> Iterator[int]:
        """The first element of every panel, for each block of tokens.

        Successive panels have different columns: a product waits for the sum to which it is added.
        """
        shape = self._shape
        for _ in range(0, shape.tokens, shape.block):
            for column in shape.chunks:
                for row in range(0, shape.k, self._rows):
                    for panel in shape.panels:
                        yield (column + panel * shape.width) * shape.k + row * shape.width

    def _load(self) -> None:
        number, out = len(self._loads), None
        if number >= self._buffers:
            # The load waits for the product that reads the buffer.
            out = self._loads[number - self._buffers].wait()
        start, block = self._start + self._panels[number], (self._rows, self._shape.width)
        self._loads.append(tl.load_async(start, block, out=out))


def panel_rows(shape: Projection, tile: int) -> int:
    """The rows of a panel: all are equal, and whole tiles of `tile` rows if possible."""
    whole = [each for each in range(tile, shape.k + 1, tile) if not shape.k % each] or [shape.k]
    most = PANEL_ROWS if shape.block > 1 else PANEL_ROWS // 2
    fitting = [each for each in whole if each <= most] or whole[:1]
    if shape.block > 1:
        return fitting[-1]
    across = max(1, shape.n // shape.width)
    enough = [each for each in fitting if shape.k // each * across >= DECODE_PANELS]
    least = [each for each in fitting if each >= DECODE_ROWS] or fitting[-1:]
    return max(enough[-1], least[0]) if enough else least[0]


EPSILON = 1e-5
"""Term below the root of the root mean square, as in Llama 2.

The norm is that of B. Zhang, R. Sennrich, "Root mean square layer normalization", NeurIPS 2019.
"""


class TokenBlock(NamedTuple):
    """(tokens, k) elements; if rows are normalised, the sum of squares of each one."""

    x: tl.Value
    squares: tl.Value | None = None


Prepare = Callable[[tl.Value], TokenBlock]
"""The operand of the products, from the elements of a block of tokens."""


class ProjectionMemory(NamedTuple):
    """Addresses of the operand, the weight, the exchange of sums and the result of a projection."""

    x: tl.Pointer
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

    def epilogue(sums: tl.Value, _squares: tl.Value | None, part: SummedPart) -> tl.Value:
        if residual is None:
            return sums.to(tl.float16)
        added = tl.empty(sums.shape, tl.float16)
        for piece, start, strides in blocks_of(shape.out, added, part.token, part.column):
            tl.load_async(residual + start, piece.shape, strides, out=piece)

        def chain(a: tl.Value, b: tl.Value) -> tl.Value:
            return (a + b.to(tl.float32)).to(tl.float16)

        return tl.fused(chain, sums, added)

    _run(shape, ProjectionMemory(x, weight, exchange, out), TokenBlock, epilogue)


def project_rotated(  # noqa: PLR0917 - the arguments of a launch are positional
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

    `cosines` and `sines` rotate each pair of adjacent columns, in float32; those of the part that a
    PE adds up in a step lie behind one another, `in_parts` of `weights`.
    """

    def epilogue(sums: tl.Value, squares: tl.Value | None, part: SummedPart) -> tl.Value:
        panels, rows, columns = sums.shape
        block = panels, rows, columns // 2
        start = part.number * prod(block)
        cos, sin = (tl.load_async(each + start, block) for each in (cosines, sines))
        result = tl.empty((*block, 2), tl.float16)
        pairs = sums.reshape(*block, 2)

        def even(a: tl.Value, b: tl.Value, c: tl.Value, s: tl.Value, r: tl.Value) -> tl.Value:
            return ((a * c - b * s) * r).to(tl.float16)

        def odd(a: tl.Value, b: tl.Value, c: tl.Value, s: tl.Value, r: tl.Value) -> tl.Value:
            return ((a * s + b * c) * r).to(tl.float16)

        turns = (each.wait().reshape(*block, 1) for each in (cos, sin))
        operands = (*_halves(pairs), *turns, _norm(squares, shape))
        for chain, half_of_result in zip((even, odd), _halves(result), strict=True):
            tl.fused(chain, *operands, out=half_of_result)
        return result.reshape(panels, rows, columns)

    _run(shape, ProjectionMemory(x, weight, exchange, out), _normalised(gain, shape), epilogue)


def project_gated(
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
        panels, rows, columns = sums.shape
        pairs = sums.reshape(panels, rows, columns // 2, 2)

        def chain(gate: tl.Value, up: tl.Value, scale: tl.Value) -> tl.Value:
            return (tl.silu(gate * scale) * (up * scale)).to(tl.float16)

        result = tl.fused(chain, *_halves(pairs), _norm(squares, shape))
        return result.reshape(panels, rows, columns // 2)

    _run(shape, ProjectionMemory(x, weight, exchange, out), _normalised(gain, shape), epilogue)


def _norm(squares: tl.Value | None, shape: Projection) -> tl.Value:
    """1 / rms of each row, (1, rows, 1, 1)."""
    assert squares is not None

    def chain(sums: tl.Value) -> tl.Value:
        return tl.rsqrt(tl.fma(sums, 1 / shape.depth, EPSILON))

    return tl.fused(chain, squares).reshape(1, squares.shape[0], 1, 1)


def _halves(pairs: tl.Value) -> tuple[tl.Value, tl.Value]:
    """The first and the second element of each pair, the last axis."""
    return pairs[:, :, :, 0:1], pairs[:, :, :, 1:2]


def _normalised(gain: tl.Pointer, shape: Projection) -> Prepare:
    """The operand times gain, with the squares of its rows: a row is divided by its norm behind the
    product, so that products need not wait for the columns of other PEs.
    """
    row = tl.load_async(gain + tl.program_id(0) * shape.k, (1, shape.k))

    def chain(a: tl.Value, g: tl.Value) -> tuple[tl.Value, ...]:
        wide = a.to(tl.float32)
        return a * g, tl.sum(wide * wide, axis=1, keep_dims=True)

    def prepare(x: tl.Value) -> TokenBlock:
        return TokenBlock(*tl.fused(chain, x, row.wait(), out=(x, None)))

    return prepare


class _Blocks:
    """The operand, one block of tokens after the other. The next block is loaded in parts, one in
    each step, so that panels of the weight need not wait for all of it.
    """

    def __init__(self, x: tl.Pointer, shape: Projection) -> None:
        self._shape, self._x = shape, x + tl.program_id(0) * shape.k * shape.tokens
        self._parts = 1 << min(3, len(shape.chunks).bit_length() - 1)
        self._buffers = [
            tl.empty((shape.block, shape.k), tl.float16) for _ in range(shape.operands)
        ]
        self._loads = list[tl.PendingValue]()
        self._token = 0
        for _ in range(self._parts):
            self.load()

    def load(self) -> None:
        """Start to load the next part, unless all parts of the next block are on their way."""
        shape = self._shape
        if len(self._loads) == self._parts or self._token == shape.tokens:
            return
        rows = shape.block // self._parts
        block, first = divmod(self._token, shape.block)
        out = self._buffers[block % shape.operands][first : first + rows]
        start = self._x + self._token * shape.k
        self._loads.append(tl.load_async(start, (rows, shape.k), out=out))
        self._token += rows

    def take(self) -> tl.Value:
        """The next block, once it has been loaded."""
        while len(self._loads) < self._parts:
            self.load()
        for load in self._loads:
            load.wait()
        self._loads.clear()
        return self._buffers[(self._token // self._shape.block - 1) % self._shape.operands]


def _run(shape: Projection, memory: ProjectionMemory, prepare: Prepare, epilogue: Epilogue) -> None:
    blocks = _Blocks(memory.x, shape)
    panels = WeightPanels(memory.weight, shape)
    sums = CubeSums(memory.exchange, memory.out, epilogue, shape)
    for token in range(0, shape.tokens, shape.block):
        operand = prepare(blocks.take())
        for column in shape.chunks:
            panels.multiply(operand.x, sums.begin(token, column, operand.squares))
            if shape.operands > 1:
                blocks.load()
            # The products of this step are queued: they run while earlier sums are exchanged.
            sums.exchange_all_but_last()
    sums.exchange_last()
