"""The C types of tile_token.py."""

cimport cython

from sip_node.chip.op_log cimport OpLog
from sip_node.kernel.calendar cimport Calendar
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
    cdef int _cube, _pe
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
    cdef public TileData start, bias
    cdef public object target, stored, accumulator
    cdef public list memory
    cdef public long long address
    cdef public int bias_row, buffer
    cdef public bytes content

    cpdef object registers(self, str dtype)
    cpdef void take_accumulator(self, object registers) except *


cdef class StepShape:
    cdef readonly object size, macs
    cdef readonly long long step_ps, output_bytes
    cdef readonly str accumulator
    cdef readonly dict inputs


cdef class TileToken:
    cdef public object gemm, tile_a, tile_b
    cdef public StepShape shape
    cdef public OutputTile output
    cdef public tuple route, rows, depth, columns
    cdef public bint first, last
    cdef public TileData a, b
    cdef public int loading, buffer, registers, passed
    cdef public long long index, submitted_ps, arrived_ps
    cdef public long long ready_ps, open_ps, turn_ps, fetch_ps, fetched_ps

    @cython.locals(stage=TileStage)
    cpdef void advance(self) except *
