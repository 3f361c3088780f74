cimport cython

from sip_node.kernel cimport checksums
from sip_node.kernel cimport records
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.chip.pe.compute.tile_buffers cimport FreeList
from sip_node.chip.pe.compute.tile_token cimport OutputTile, SerialStage, TileToken
from sip_node.kernel.containers.int_array cimport IntArray
from sip_node.kernel.tile_data cimport TileData

cdef int _MOST_FETCHES
cdef long long _NOT_YET_PS


cdef class FetchPort(SerialStage):
    cdef public FifoServer server
    cdef public long long records
    cdef object _registers
    cdef list _addresses
    cdef FreeList _sets, _accumulators, buffers
    cdef int fetches
    cdef IntArray starts_ps, ends_ps
    cdef long long open_ps, turn_ps

    @cython.locals(
        now_ps=cython.longlong, token=TileToken, output=OutputTile, start=TileData
    )
    cpdef void begin(self) except *
    # hot
    @cython.locals(start_ps=cython.longlong)
    cdef void _fetch(self, TileData tile, long long now_ps) except *
    @cython.locals(output=OutputTile, recorded=cython.int)
    cdef void end(self, TileToken token) except *
    # hot
    cdef void _record(self, int index, TileToken token, TileData tile, long long address) except *


cdef class StorePort(SerialStage):
    cdef public FifoServer server
    cdef public long long records
    cdef object _buffers, _tcm, _memory, _target
    cdef FreeList _accumulators, _results
    cdef long long _nbytes, start_ps

    @cython.locals(now_ps=cython.longlong, token=TileToken)
    cpdef void begin(self) except *
    @cython.locals(output=OutputTile)
    cdef bint _find_target(self, TileToken token) except -1
    @cython.locals(output=OutputTile, content=bytes)
    cdef void end(self, TileToken token) except *
