"""The stage that loads the operands of steps, in C; see `sip_node.chip.pe.tile_dma`.

A tile of one piece is one request of the DMA engine, which goes on here when it is complete. What
its READ and its records have is found once: all output tiles of its row or column read a tile.
"""

from collections import deque

from runtime.core.trace import Operand
from sip_node.compiled.staged_matrix cimport StagedMatrix
from sip_node.compiled.tile_data cimport kind_of, loaded_tile


cdef class TileRead(DmaRequest):
    """The request for a tile."""

    cdef void complete(self) except *:
        self.stage.loaded(
            self.token,
            loaded_tile(self.buffers, self.target_inputs, self.data, self.checksum),
            self.is_b,
        )


cdef class LoadedOperand:
    """Called with the bytes of an operand that `read` or `read_pieces` has read."""

    def __call__(self, read):
        data = self.stage.data_of(self.tile, self.block, read.value)
        self.stage.loaded(self.token, data, self.is_b)


cdef class LoadStage(Stage):
    """The twin of `ReferenceTileLoad`: `addresses` are those of the buffers of both operands."""

    def __init__(self, Calendar engine not None, dma, list addresses not None, data_of,
                 read_pieces):
        self.calendar, self.addresses = engine, addresses
        self.data_of, self.read_pieces = data_of, read_pieces
        self.read, self.buffer_blocks, self.loading = dma.read, {}, deque()
        if isinstance(dma, PeDma) and type(dma).read is PeDma.read:
            self.dma, self.locate = dma, (<PeDma> dma).locate

    cdef int take(self, Token token) except -1:
        self.loading.append(token)
        a, b = token.sources
        if token.tile_a is None:
            token.tile_a, token.tile_b = (
                a.at(token.rows, token.depth), b.at(token.depth, token.columns)
            )
        self.load(token, a, token.tile_a, False)
        self.load(token, b, token.tile_b, True)
        if not token.loading:
            # Both are staged, so they are ready at once.
            self.pass_on(token)
        return 0

    cdef int load(self, Token token, object source, object tile, bint is_b) except -1:
        cdef LoadedOperand operand
        cdef StreamedTile streamed
        if isinstance(source, StagedMatrix):
            if is_b:
                token.b = tile
            else:
                token.a = tile
            token.loading -= 1
            return 0
        streamed = <StreamedTile?> tile
        if self.dma is not None and streamed.inputs is not None:
            return self.read_tile(token, streamed, is_b)
        operand = LoadedOperand.__new__(LoadedOperand)
        operand.stage, operand.token, operand.tile, operand.is_b = self, token, streamed, is_b
        operand.block = Operand(
            self.addresses[token.buffer][is_b], streamed.form.shape, streamed.form.element
        )
        if streamed.inputs is not None:
            self.read(streamed.inputs[0], operand.block).then(operand)
        else:
            self.read_pieces(streamed.pieces, operand.block, operand)
        return 0

    cdef int read_tile(self, Token token, StreamedTile tile, bint is_b) except -1:
        """Read a tile of one piece."""
        cdef TileRead request = TileRead.__new__(TileRead)
        cdef TileForm form = tile.form
        if not tile.is_located:
            self.locate_tile(tile)
        if form.buffers is None:
            form.buffers = self.buffers_for(form)
        request.stage, request.token, request.is_b = self, token, is_b
        request.buffers = form.buffers
        request.target_inputs = self.target(form.buffers, token.buffer, is_b)
        request.target, request.inputs = request.target_inputs[0], tile.inputs
        request.total = form.nbytes
        self.dma.read_from(request, tile.sip, tile.node, tile.address, tile.rows)
        return 0

    cdef int locate_tile(self, StreamedTile tile) except -1:
        """Find the memory of a tile, or of all tiles of a matrix that is one block."""
        tile.sip, tile.node = self.locate(tile.address)
        tile.is_located = True
        if tile.matrix is not None:
            tile.matrix.is_located = True
            tile.matrix.sip, tile.matrix.node = tile.sip, tile.node
        return 0

    cdef BufferBlocks buffers_for(self, TileForm form):
        """The buffers of tiles of one shape and type."""
        cdef BufferBlocks buffers
        key = (form.shape, form.element)
        found = self.buffer_blocks.get(key)
        if found is None:
            buffers = found = self.buffer_blocks[key] = BufferBlocks.__new__(BufferBlocks)
            buffers.shape, buffers.element = key
            buffers.nbytes, buffers.kind = form.nbytes, kind_of(form.element)
            buffers.dtype = form.dtype
            buffers.blocks = [None] * (2 * len(self.addresses))
        return <BufferBlocks> found

    cdef tuple target(self, BufferBlocks buffers, int buffer, bint is_b):
        """The block of a buffer, in a tuple."""
        cdef int index = 2 * buffer + is_b
        found = buffers.blocks[index]
        if found is None:
            address = self.addresses[buffer][is_b]
            found = buffers.blocks[index] = (Operand(address, buffers.shape, buffers.element),)
        return <tuple> found

    cdef int loaded(self, Token token, object data, bint is_b) except -1:
        """An operand of a token is in TCM."""
        if is_b:
            token.b = data
        else:
            token.a = data
        token.loading -= 1
        if not token.loading:
            self.pass_on(token)
        return 0

    cdef int pass_on(self, Token token) except -1:
        """The operands of a token are in TCM: it leaves behind those before it."""
        token.ready_ps = self.calendar.now_ps
        # In order: a token whose data is late holds back those behind it that are complete.
        while self.loading and not (<Token> self.loading[0]).loading:
            (<Token> self.loading.popleft()).go_on()
        return 0
