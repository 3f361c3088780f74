cimport cython

from sip_node.kernel cimport records
from sip_node.chip.pe.compute.tile_buffers cimport FreeList
from sip_node.chip.pe.compute.tile_token cimport OutputTile, SerialStage, StepShape, TileToken
from sip_node.kernel.tile_data cimport TileData


@cython.locals(
    idle_ps=cython.longlong, for_accumulator_ps=cython.longlong, store_ps=cython.longlong,
    late_ps=cython.longlong, dma_ps=cython.longlong,
)
cpdef tuple stall_before(TileToken token, long long idle_since_ps, long long now_ps)


cdef class PeGemm(SerialStage):
    cdef public long long free_ps, busy_ps, tiles
    cdef public object macs
    cdef public long long stall_dma_ps, stall_fetch_ps, stall_store_ps
    cdef long long start_ps, requested_ps
    cdef int waited_for
    cdef object _registers, _step_ps
    cdef FreeList _sets, _accumulators
    cdef bint _is_replaced
    cdef readonly object _model, _clock, _full_cycles

    @cython.locals(now_ps=cython.longlong, token=TileToken)
    cpdef void begin(self) except *
    @cython.locals(
        idle_since_ps=cython.longlong, dma_ps=cython.longlong, fetch_ps=cython.longlong,
        store_ps=cython.longlong,
    )
    cdef void _count_stall(self, TileToken token, long long now_ps) except *
    @cython.locals(output=OutputTile, shape=StepShape, a=TileData, b=TileData)
    cdef void end(self, TileToken token) except *
    @cython.locals(output=OutputTile, shape=StepShape, begins=cython.bint, inputs=tuple)
    cdef tuple _inputs(self, TileToken token)
