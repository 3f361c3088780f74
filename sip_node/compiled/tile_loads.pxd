"""The stage that loads the operands of steps, in C: see tile_loads.pyx."""

from sip_node.compiled.calendar cimport Calendar
from sip_node.chip.pe.dma cimport DmaRequest, PeDma
from sip_node.compiled.streamed_matrix cimport StreamedTile, TileForm
from sip_node.compiled.tile_data cimport BufferBlocks
from sip_node.compiled.tile_token cimport Stage, Token


cdef class TileRead(DmaRequest):
    # The token that waits for the tile, and which of its operands that is.
    cdef LoadStage stage
    cdef Token token
    cdef BufferBlocks buffers
    # The buffer that it is read to, in a tuple.
    cdef tuple target_inputs
    cdef bint is_b


cdef class LoadedOperand:
    cdef LoadStage stage
    cdef Token token
    cdef StreamedTile tile
    cdef object block
    cdef bint is_b


cdef class LoadStage(Stage):
    cdef Calendar calendar
    # The DMA engine where its `read` is that in C, else None.
    cdef PeDma dma
    cdef object locate
    cdef object data_of
    cdef object read
    cdef object read_pieces
    cdef list addresses
    cdef dict buffer_blocks
    cdef object loading

    cdef int load(self, Token token, object source, object tile, bint is_b) except -1
    cdef int read_tile(self, Token token, StreamedTile tile, bint is_b) except -1
    cdef int locate_tile(self, StreamedTile tile) except -1
    cdef BufferBlocks buffers_for(self, TileForm form)
    cdef tuple target(self, BufferBlocks buffers, int buffer, bint is_b)
    cdef int pass_on(self, Token token) except -1
    cdef int loaded(self, Token token, object data, bint is_b) except -1
