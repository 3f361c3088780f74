"""The two DMA stages of a tile: memory to the scheduler's buffers in TCM, and results back."""

from collections import deque
from functools import partial
from zlib import crc32

import numpy as np

from runtime.core.dtypes import DType
from runtime.core.trace import Operand
from runtime.model.tiles import Span
from sip_node.chip.completion import Completion, all_of, completed
from sip_node.chip.pe.dma import PeDma
from sip_node.chip.pe.operand_tiles import Source, Staged, TileData
from sip_node.chip.pe.tile_buffers import TileBuffers
from sip_node.chip.pe.tile_token import TileToken
from sip_node.chip.strided_block import nbytes_of, part_of
from sip_node.pdes.engine import Engine


class TileLoad:
    """Loads the operands of tokens to TCM. Tokens leave in the order in which they came.

    The requests of several tokens are outstanding at once, and may complete in any order.
    """

    def __init__(self, engine: Engine, dma: PeDma, buffers: TileBuffers) -> None:
        self._engine, self._dma, self._buffers = engine, dma, buffers
        self._loading: deque[TileToken] = deque()

    def accept(self, token: TileToken) -> None:
        """Take a token that has a buffer for each operand."""
        self._loading.append(token)
        tile, (a, b) = token.tile, token.sources
        left = self._load(a, tile.rows, tile.depth, self._buffers.a(token.buffer))
        right = self._load(b, tile.depth, tile.columns, self._buffers.b(token.buffer))
        # A staged operand is ready at once; the token waits for the other one only.
        all_of([left, right]).then(partial(self._loaded, token))

    def _load(
        self, source: Source, rows: Span, columns: Span, address: int
    ) -> Completion[TileData]:
        if isinstance(source, Staged):
            return completed(source.at(rows, columns))
        shape = (rows[1] - rows[0], columns[1] - columns[0])
        block = Operand(address, shape, source.dtype.name)
        tile, reads, offset = Completion[TileData](), list[Completion[bytes]](), 0
        for piece in source.at(rows, columns):
            nbytes = nbytes_of(piece)
            reads.append(self._dma.read(piece, part_of(block, offset, nbytes)))
            offset += nbytes
        all_of(reads).then(partial(_assemble, tile, block, source.dtype))
        return tile

    def _loaded(self, token: TileToken, operands: Completion[list[TileData]]) -> None:
        token.operands = operands.value
        token.ready_ps = self._engine.now_ps
        # In order: a token whose data is late holds back those behind it that are complete.
        while self._loading and self._loading[0].operands:
            self._loading.popleft().advance()


class TileWrite:
    """Writes results from the scheduler's buffers to memory.

    A token leaves, and its buffer is free, when the memory has acknowledged all of the tile.
    """

    def __init__(self, dma: PeDma, buffers: TileBuffers) -> None:
        self._dma, self._buffers = dma, buffers

    def accept(self, token: TileToken) -> None:
        """Take a token whose result is in a buffer."""
        output = token.output
        content = b"" if output.data is None else output.data.tobytes()
        block = Operand(self._buffers.result(output.buffer), output.shape, token.gemm.dtype.name)
        writes, offset = list[Completion[bytes]](), 0
        for piece in output.memory:
            end = offset + nbytes_of(piece)
            part = part_of(block, offset, end - offset)
            writes.append(self._dma.write(part, piece, content[offset:end]))
            offset = end
        all_of(writes).then(partial(self._written, token))

    def _written(self, token: TileToken, _acknowledged: Completion[list[bytes]]) -> None:
        self._buffers.results.free(token.output.buffer)
        token.advance()


def _assemble(
    tile: Completion[TileData], block: Operand, dtype: DType, pieces: Completion[list[bytes]]
) -> None:
    content = pieces.value[0] if len(pieces.value) == 1 else b"".join(pieces.value)
    data = np.frombuffer(content, dtype.numpy).reshape(block.shape) if content else None
    tile.complete(TileData(block, data, crc32(content)))
