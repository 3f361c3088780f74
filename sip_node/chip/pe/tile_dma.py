"""The two DMA stages of a tile: memory to the scheduler's buffers in TCM, and results back."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.trace import Operand
from sip_node.chip.completion import Completion, all_of
from sip_node.chip.pe.dma import PeDma
from sip_node.chip.pe.operand_tiles import Staged, StreamedTile, TileData
from sip_node.chip.pe.tile_buffers import TileBuffers
from sip_node.chip.pe.tile_token import TileToken
from sip_node.chip.strided_block import nbytes_of, part_of
from sip_node.pdes.engine import Engine

_Loaded = Callable[[TileToken, StreamedTile, Operand, Completion[bytes]], None]


class ReferenceTileLoad:
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
        if isinstance(a, Staged):
            token.a = a.at(tile.rows, tile.depth)
            token.loading -= 1
        else:
            address = self._buffers.a(token.buffer)
            self._load(token, a.at(tile.rows, tile.depth), address, self._loaded_a)
        if isinstance(b, Staged):
            token.b = b.at(tile.depth, tile.columns)
            token.loading -= 1
        else:
            address = self._buffers.b(token.buffer)
            self._load(token, b.at(tile.depth, tile.columns), address, self._loaded_b)
        if not token.loading:
            # Both are staged, so they are ready at once.
            self._pass_on(token)

    def _load(self, token: TileToken, tile: StreamedTile, address: int, loaded: _Loaded) -> None:
        """Read a tile to a buffer."""
        block = Operand(address, tile.shape, tile.dtype.name)
        done = partial(loaded, token, tile, block)
        if len(tile.pieces) == 1:
            self._dma.read(tile.pieces[0], block).then(done)
        else:
            _read_pieces(self._dma, tile.pieces, block, done)

    def _loaded_a(
        self, token: TileToken, tile: StreamedTile, block: Operand, read: Completion[bytes]
    ) -> None:
        token.a = _data(tile, block, read.value)
        token.loading -= 1
        if not token.loading:
            self._pass_on(token)

    def _loaded_b(
        self, token: TileToken, tile: StreamedTile, block: Operand, read: Completion[bytes]
    ) -> None:
        token.b = _data(tile, block, read.value)
        token.loading -= 1
        if not token.loading:
            self._pass_on(token)

    def _pass_on(self, token: TileToken) -> None:
        """The operands of a token are in TCM: it leaves behind those before it."""
        token.ready_ps = self._engine.now_ps
        # In order: a token whose data is late holds back those behind it that are complete.
        loading = self._loading
        while loading and not loading[0].loading:
            loading.popleft().advance()


class ReferenceTileWrite:
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
        _write_pieces(self._dma, output.memory, block, content).then(partial(self._written, token))

    def _written(self, token: TileToken, _acknowledged: Completion[list[bytes]]) -> None:
        self._buffers.results.free(token.output.buffer)
        token.advance()


def _data(tile: StreamedTile, block: Operand, content: bytes) -> TileData:
    data = np.ndarray(tile.shape, tile.dtype.numpy, content) if content else None
    return TileData(block, tile.nbytes, data, crc32(content))


def _write_pieces(
    dma: PeDma, pieces: Sequence[Operand], block: Operand, content: bytes
) -> Completion[list[bytes]]:
    """Write a block in TCM to physical blocks, one part of it to each."""
    writes, offset = list[Completion[bytes]](), 0
    for piece in pieces:
        end = offset + nbytes_of(piece)
        part = part_of(block, offset, end - offset)
        writes.append(dma.write(part, piece, content[offset:end]))
        offset = end
    return all_of(writes)


def _read_pieces(
    dma: PeDma,
    pieces: Sequence[Operand],
    block: Operand,
    done: Callable[[Completion[bytes]], None],
) -> None:
    """Read physical blocks one behind the other to a block in TCM."""
    reads, offset = list[Completion[bytes]](), 0
    for piece in pieces:
        nbytes = nbytes_of(piece)
        reads.append(dma.read(piece, part_of(block, offset, nbytes)))
        offset += nbytes
    all_of(reads).then(partial(_join, done))


def _join(loaded: Callable[[Completion[bytes]], None], pieces: Completion[list[bytes]]) -> None:
    whole: Completion[bytes] = Completion()
    whole.complete(b"".join(pieces.value))
    loaded(whole)


if TYPE_CHECKING or not IS_COMPILED:
    TileLoad = ReferenceTileLoad
    TileWrite = ReferenceTileWrite
else:
    from sip_node.compiled.tile_loads import LoadStage
    from sip_node.compiled.tile_results import WriteStage

    class TileLoad(LoadStage):
        """The stage in C; see `ReferenceTileLoad`."""

        def __init__(self, engine: Engine, dma: PeDma, buffers: TileBuffers) -> None:
            addresses = [(buffers.a(each), buffers.b(each)) for each in range(buffers.count)]
            pieces = partial(_read_pieces, dma)
            super().__init__(engine, dma, addresses, _data, pieces)

    class TileWrite(WriteStage):
        """The stage in C; see `ReferenceTileWrite`."""

        def __init__(self, dma: PeDma, buffers: TileBuffers) -> None:
            super().__init__(dma, buffers, partial(_write_pieces, dma))
