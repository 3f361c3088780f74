cimport cython

from sip_node.kernel cimport tile_data as tiles
from sip_node.chip.pe.dma cimport DmaRequest, PeDma
from sip_node.chip.pe.compute.operand_tiles cimport Streamed, StreamedTile, TileForm
from sip_node.chip.pe.compute.tile_buffers cimport FreeList
from sip_node.chip.pe.compute.tile_token cimport OutputTile, TileStage, TileToken
from sip_node.chip.records.op_log cimport OpLog
from sip_node.kernel.calendar cimport Calendar
from sip_node.kernel.tile_data cimport TileData


cdef class TileRead(DmaRequest):
    cdef TileLoad stage
    cdef TileToken token
    cdef TileForm form
    cdef tuple block
    cdef int operand

    @cython.locals(tile=TileData)
    cdef void complete(self) except *


cdef class TileLoad(TileStage):
    cdef Calendar _engine
    cdef OpLog _log
    cdef object _dma
    cdef PeDma _pe_dma
    cdef list addresses
    cdef object loading
    cdef dict _targets

    cpdef void accept(self, TileToken token) except *
    @cython.locals(streamed=StreamedTile, block=tuple)
    cdef void _load(self, TileToken token, object tile, int operand) except *
    # hot
    @cython.locals(request=TileRead)
    cdef void _read(self, TileToken token, StreamedTile tile, tuple block, int operand) except *
    @cython.locals(matrix=Streamed)
    cdef void locate(self, StreamedTile tile) except *
    @cython.locals(targets=list, index=cython.int)
    cdef tuple target(self, TileForm form, int buffer, int operand)
    # hot
    cdef void loaded(self, TileToken token, TileData tile, int operand) except *
    @cython.locals(first=TileToken)
    cdef void _pass_on(self, TileToken token) except *


cdef class TileWriteRequest(DmaRequest):
    cdef TileWrite stage
    cdef TileToken token

    cdef void complete(self) except *


cdef class TileWrite(TileStage):
    cdef OpLog _log
    cdef object _dma
    cdef PeDma _pe_dma
    cdef FreeList _results

    @cython.locals(output=OutputTile, request=TileWriteRequest)
    cpdef void accept(self, TileToken token) except *
    cdef void written(self, TileToken token) except *
