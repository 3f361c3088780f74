"""The C types of gemm.py."""

cimport cython

cimport sip_node.kernel.records as records
from sip_node.chip.pe.tile_buffers cimport FreeList
from sip_node.chip.pe.tile_token cimport OutputTile, SerialStage, StepShape, TileToken
from sip_node.kernel.tile_data cimport TileData


@cython.locals(
    idle_ps=cython.longlong, for_accumulator_ps=cython.longlong, store_ps=cython.longlong,
    late_ps=cython.longlong, dma_ps=cython.longlong,
)
cpdef tuple stall_before(TileToken token, long long idle_since_ps, long long now_ps)


cdef class PeGemm(SerialStage):
    cdef public long long free_ps
    cdef public long long busy_ps
    cdef public object macs
    cdef public long long tiles
    cdef public long long stall_dma_ps
    cdef public long long stall_fetch_ps
    cdef public long long stall_store_ps
    cdef long long start_ps
    cdef long long requested_ps
    cdef int waited_for
    cdef object _registers
    cdef FreeList _sets
    cdef FreeList _accumulators
    cdef bint _is_replaced
    cdef readonly object _model
    cdef readonly object _clock
    cdef readonly object _full_cycles
    cdef object _step_ps

    @cython.locals(now_ps=cython.longlong, token=TileToken)
    cpdef void begin(self) except *
    @cython.locals(idle_since_ps=cython.longlong, stall=tuple)
    cdef void _count_stall(self, TileToken token, long long now_ps) except *
    @cython.locals(output=OutputTile, shape=StepShape, a=TileData, b=TileData)
    cdef void end(self, TileToken token) except *
    @cython.locals(output=OutputTile, shape=StepShape, begins=cython.bint, inputs=tuple)
    cdef tuple _inputs(self, TileToken token)
