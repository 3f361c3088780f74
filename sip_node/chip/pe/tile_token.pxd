"""The C types of tile_token.py."""

cimport cython

from sip_node.chip.op_log cimport OpLog
from sip_node.compiled.calendar cimport Calendar
from sip_node.kernel.component cimport Component
from sip_node.kernel.tile_data cimport TileData, TileSums


cdef class TileToken
cdef class StageEvents


cdef class TileStage:
    cpdef void accept(self, TileToken token) except *


cdef class ForeignStage(TileStage):
    cdef object _stage


cdef class SerialStage(TileStage):
    cdef readonly Calendar engine
    cdef OpLog _log
    cdef int _cube
    cdef int _pe
    cdef object waiting
    cdef bint is_busy
    cdef StageEvents events

    cpdef void accept(self, TileToken token) except *
    cdef void ends_at(self, long long time_ps, TileToken token) except *
    cpdef void begin(self) except *
    cdef void end(self, TileToken token) except *


cdef class StageEvents(Component):
    cdef SerialStage _stage

    @cython.locals(token=TileToken)
    cpdef void proceed(self, int step, object subject) except *


cdef class OutputTile(TileSums):
    cdef readonly TileData start
    cdef readonly TileData bias
    cdef readonly object target
    cdef list memory
    cdef readonly object accumulator
    cdef readonly long long address
    cdef readonly int bias_row
    cdef int buffer
    cdef object stored
    cdef bytes content

    cpdef object registers(self, str dtype)
    cdef void take_accumulator(self, object registers) except *


cdef class StepShape:
    cdef readonly object size
    cdef readonly long long step_ps
    cdef readonly object macs
    cdef readonly str accumulator
    cdef readonly long long output_bytes
    cdef readonly dict inputs


cdef class TileToken:
    cdef readonly object gemm
    cdef readonly StepShape shape
    cdef readonly OutputTile output
    cdef public tuple route
    cdef readonly tuple rows
    cdef readonly tuple depth
    cdef readonly tuple columns
    cdef readonly bint first
    cdef readonly bint last
    cdef object tile_a
    cdef object tile_b
    cdef readonly TileData a
    cdef readonly TileData b
    cdef readonly int loading
    cdef readonly int buffer
    cdef readonly int registers
    cdef int passed
    cdef readonly long long index
    cdef public long long submitted_ps
    cdef long long arrived_ps
    cdef public long long ready_ps
    cdef public long long open_ps
    cdef public long long turn_ps
    cdef public long long fetch_ps
    cdef public long long fetched_ps

    @cython.locals(stage=TileStage)
    cpdef void advance(self) except *
