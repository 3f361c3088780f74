"""The two ends of the way of a tile: from memory to the scheduler's buffers in TCM, and from there back to memory."""

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
    """Brings the operands of a token to TCM if they are not there. Tokens leave in the order in which they came."""

    def __init__(self, engine: Engine, dma: PeDma, buffers: TileBuffers) -> None:
        self._engine, self._dma, self._buffers = engine, dma, buffers
        self._coming: deque[TileToken] = deque()

    def accept(self, token: TileToken) -> None:
        """Take a token that has a buffer for each operand."""
        self._coming.append(token)
        tile, (a, b) = token.tile, token.sources
        left = self._tile(a, tile.rows, tile.depth, self._buffers.a(token.buffer))
        right = self._tile(b, tile.depth, tile.columns, self._buffers.b(token.buffer))
        all_of([left, right]).then(partial(self._arrived, token))

    def _tile(
        self, source: Source, rows: Span, columns: Span, address: int
    ) -> Completion[TileData]:
        if isinstance(source, Staged):
            return completed(source.at(rows, columns))
        block = Operand(address, (rows[1] - rows[0], columns[1] - columns[0]), source.dtype.name)
        tile, reads, offset = Completion[TileData](), list[Completion[bytes]](), 0
        for piece in source.at(rows, columns):
            nbytes = nbytes_of(piece)
            reads.append(self._dma.read(piece, part_of(block, offset, nbytes)))
            offset += nbytes
        all_of(reads).then(partial(_assemble, tile, block, source.dtype))
        return tile

    def _arrived(self, token: TileToken, operands: Completion[list[TileData]]) -> None:
        token.operands = operands.value
        token.ready_ps = self._engine.now_ps
        while self._coming and self._coming[0].operands:
            self._coming.popleft().advance()


class TileWrite:
    """Writes stored tiles from the scheduler's buffers to memory; a token leaves when the memory has acknowledged all of it."""

    def __init__(self, dma: PeDma, buffers: TileBuffers) -> None:
        self._dma, self._buffers = dma, buffers

    def accept(self, token: TileToken) -> None:
        """Take a token whose result is in a buffer."""
        output = token.output
        content = b"" if output.data is None else output.data.tobytes()
        block = Operand(self._buffers.result(output.buffer), output.shape, token.gemm.dtype.name)
        writes, offset = list[Completion[bytes]](), 0
        for piece in output.memory:
            nbytes = nbytes_of(piece)
            writes.append(
                self._dma.write(
                    part_of(block, offset, nbytes), piece, content[offset : offset + nbytes]
                )
            )
            offset += nbytes
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
