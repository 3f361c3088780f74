"""The two DMA stages of a tile: memory to the scheduler's buffers in TCM, and results back."""

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

import sip_node.kernel.tile_data as tiles
from runtime.core.trace import Operand
from sip_node.chip.completion import Completion, all_of
from sip_node.chip.mapping.strided_block import nbytes_of, part_of
from sip_node.chip.pe.compute.operand_tiles import StreamedTile, TileForm
from sip_node.chip.pe.compute.tile_buffers import TileBuffers
from sip_node.chip.pe.compute.tile_token import TileStage, TileToken
from sip_node.chip.pe.dma import DmaRequest, PeDma
from sip_node.chip.records.op_log import OpLog
from sip_node.kernel.tile_data import TileData

if TYPE_CHECKING:
    from sip_node.pdes.engine import Engine


class TileRead(DmaRequest):
    """The request for a tile of one piece, operand 0 or 1 of `token`, which is read to `block`."""

    __slots__ = ("block", "form", "operand", "stage", "token")

    def complete(self) -> None:
        """The bytes of the tile are in TCM."""
        tile = tiles.loaded_tile(self.block, self.form.dtype, self.total, self.data, self.checksum)
        self.stage.loaded(self.token, tile, self.operand)


class TileLoad(TileStage):
    """Loads the operands of tokens to TCM. Tokens leave in the order in which they came.

    The requests of several tokens are outstanding at once, and may complete in any order. What the
    READ of a tile and its records have is found once: all output tiles of its row or column read
    it.
    """

    def __init__(self, engine: "Engine", log: OpLog, dma: PeDma, buffers: TileBuffers) -> None:
        self._engine, self._log, self._dma = engine, log, dma
        # None for a class of the user with another `read`.
        self._pe_dma = dma if is_own(dma, "read") else None
        self.addresses = [(buffers.a(index), buffers.b(index)) for index in range(buffers.count)]
        self.loading: deque[TileToken] = deque()
        # By shape and type: for each buffer and operand the block, alone as records have it.
        self._targets: dict[tuple[tuple[int, ...], str], list[Any]] = {}

    def accept(self, token: TileToken) -> None:
        """Take a token that has a buffer for each operand."""
        self.loading.append(token)
        # Both at once: the two requests share the latency of the memory.
        self._load(token, token.tile_a, 0)
        self._load(token, token.tile_b, 1)

    def _load(self, token: TileToken, tile: TileData | StreamedTile, operand: int) -> None:
        if isinstance(tile, TileData):
            # Staged, so it is ready at once.
            self.loaded(token, tile, operand)
            return
        streamed = tile
        block = self.target(streamed.form, token.buffer, operand)
        if self._pe_dma is not None and streamed.inputs is not None:
            self._read(token, streamed, block, operand)
            return
        self._log.step = token.step
        reading = _read_pieces(self._dma, streamed.pieces, block[0])
        reading.then(partial(self._joined, token, streamed.form, block, operand))

    def _read(
        self, token: TileToken, tile: StreamedTile, block: tuple[Operand], operand: int
    ) -> None:
        """Read a tile of one piece."""
        assert self._pe_dma is not None
        assert tile.inputs is not None
        if tile.sip < 0:
            self.locate(tile)
        request = TileRead.__new__(TileRead)
        request.stage, request.token, request.operand = self, token, operand
        request.step = token.step
        request.form, request.block = tile.form, block
        request.inputs, request.target, request.total = tile.inputs, block[0], tile.form.nbytes
        self._pe_dma.read_from(request, tile.sip, tile.node, tile.address, tile.rows)

    def locate(self, tile: StreamedTile) -> None:
        """Find the memory of a tile, or of all tiles of a matrix that is one block."""
        assert self._pe_dma is not None
        matrix = tile.matrix
        if matrix is None:
            tile.sip, tile.node = self._pe_dma.locate(tile.address)
            return
        if matrix.sip < 0:
            matrix.sip, matrix.node = self._pe_dma.locate(tile.address)
        tile.sip, tile.node = matrix.sip, matrix.node

    def target(self, form: TileForm, buffer: int, operand: int) -> tuple[Operand]:
        """The block of a buffer, alone in a tuple."""
        targets = form.targets
        if targets is None:
            targets = form.targets = self._targets.setdefault(
                (form.shape, form.element), [None] * (2 * len(self.addresses))
            )
        index = 2 * buffer + operand
        target = targets[index]
        if target is None:
            address = self.addresses[buffer][operand]
            target = targets[index] = (Operand(address, form.shape, form.element),)
        return target

    def _joined(
        self,
        token: TileToken,
        form: TileForm,
        block: tuple[Operand],
        operand: int,
        pieces: Completion[list[bytes]],
    ) -> None:
        content = b"".join(pieces.value)
        tile = tiles.loaded_tile(block, form.dtype, form.nbytes, content, crc32(content))
        self.loaded(token, tile, operand)

    def loaded(self, token: TileToken, tile: TileData, operand: int) -> None:
        """An operand of a token is in TCM."""
        if operand:
            token.b = tile
        else:
            token.a = tile
        token.loading -= 1
        if not token.loading:
            self._pass_on(token)

    def _pass_on(self, token: TileToken) -> None:
        """The operands of a token are in TCM: it leaves behind those before it."""
        # The time for the stalls of the engine: from here on the step no longer waits for memory.
        token.ready_ps = self._engine.now_ps
        # In order: a token whose data is late holds back those behind it that are complete.
        while self.loading:
            first = self.loading[0]
            if first.loading:
                return
            self.loading.popleft()
            first.advance()


class TileWriteRequest(DmaRequest):
    """The request that writes the result of `token`, of one piece."""

    __slots__ = ("stage", "token")

    def complete(self) -> None:
        """The memory has acknowledged it."""
        self.stage.written(self.token)


class TileWrite(TileStage):
    """Writes results from the scheduler's buffers to memory.

    A token leaves, and its buffer is free, when the memory has acknowledged all of the tile.
    """

    def __init__(self, log: OpLog, dma: PeDma, buffers: TileBuffers) -> None:
        self._log, self._dma, self._results = log, dma, buffers.results
        # None for a class of the user with another `write`.
        self._pe_dma = dma if is_own(dma, "write") else None

    def accept(self, token: TileToken) -> None:
        """Take a token whose result is in a buffer."""
        output = token.output
        assert output.stored is not None
        if self._pe_dma is None or len(output.memory) != 1:
            self._log.step = token.step
            writing = _write_pieces(self._dma, output.memory, output.stored, output.content)
            writing.then(partial(self._acknowledged, token))
            return
        request = TileWriteRequest.__new__(TileWriteRequest)
        request.stage, request.token, request.data = self, token, output.content
        request.step = token.step
        request.inputs, request.target = (output.stored,), output.memory[0]
        self._pe_dma.write_to(request)

    def _acknowledged(self, token: TileToken, _pieces: Completion[list[bytes]]) -> None:
        self.written(token)

    def written(self, token: TileToken) -> None:
        """The memory has acknowledged all of a result."""
        # With the acknowledgement, the only event by which the engine observes the end of a write.
        self._results.free(token.output.buffer)
        token.advance()


def is_own(dma: Any, method: str) -> bool:
    """Whether a method of a DMA engine is that of `PeDma`."""
    return isinstance(dma, PeDma) and getattr(type(dma), method) is getattr(PeDma, method)


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


def _read_pieces(dma: PeDma, pieces: Sequence[Operand], block: Operand) -> Completion[list[bytes]]:
    """Read physical blocks one behind the other to a block in TCM."""
    reads, offset = list[Completion[bytes]](), 0
    for piece in pieces:
        nbytes = nbytes_of(piece)
        reads.append(dma.read(piece, part_of(block, offset, nbytes)))
        offset += nbytes
    return all_of(reads)
