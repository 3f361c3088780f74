cimport cython

from sip_node.chip.records.op_log cimport OpLog
from sip_node.chip.pe.compute.tile_buffers cimport FreeList
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
    cdef public long long index, step, submitted_ps, arrived_ps
    cdef public long long ready_ps, open_ps, turn_ps, fetch_ps, fetched_ps

    @cython.locals(stage=TileStage)
    cpdef void advance(self) except *


cdef class TileGrid:
    cdef object _source
    cdef list _rows, _columns, _tiles

    @cython.locals(index=cython.Py_ssize_t)
    cdef object at(self, Py_ssize_t row, Py_ssize_t column)


cdef class StepTokens:
    cdef object gemm, output_of, _shapes
    cdef tuple _steps, _whole
    cdef list rows, depths, columns
    cdef TileGrid a, b
    cdef dict _shapes_of
    cdef FreeList _buffers
    cdef long long submitted_ps, index, _count
    cdef public long long step
    cdef OutputTile output
    cdef list _output_shapes
    cdef public Calendar calendar

    @cython.locals(token=TileToken, depth=cython.longlong)
    cdef TileToken following(self)
    @cython.locals(
        depths=cython.longlong, columns=cython.longlong, depth=cython.longlong,
        output=cython.longlong, row=cython.longlong, column=cython.longlong,
    )
    cdef void place(self, TileToken token) except *
    cdef void _begin_output(self, tuple rows, tuple columns) except *


cdef class TokenQueue:
    cdef FreeList _buffers
    cdef object _waiting

    @cython.locals(tokens=StepTokens, token=TileToken)
    cpdef void _issue(self) except *
