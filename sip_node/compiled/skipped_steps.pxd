"""The steps that a fast-forward skips: see skipped_steps.pyx."""

from sip_node.chip.pe.dma cimport DmaRequest
from sip_node.chip.records.op_log cimport OpLog
from sip_node.compiled.operation cimport Operation
from sip_node.chip.records.packet_train cimport QueueTimes
from sip_node.compiled.pipeline cimport ProductTiles
from sip_node.chip.pe.compute.operand_tiles cimport StreamedTile
from sip_node.chip.pe.compute.tile_token cimport OutputTile, TileToken


cdef class RecordOfStep:
    cdef SkippedSteps product
    cdef int kind
    # Of a load or a fetch: which operand; of a load: the buffer.
    cdef bint is_b
    cdef int slot
    # The number of the step, or that of the output tile.
    cdef long long number
    # The fields of the record.
    cdef Operation about
    cdef str engine
    cdef str name
    cdef tuple shape
    cdef str dtype
    cdef tuple strides
    cdef tuple inputs
    # Of a fetch: whether the tile is in a buffer. Of a load and a store: the block in TCM.
    cdef bint is_streamed
    cdef object block
    # What its packets have queued, in a run with records.
    cdef QueueTimes times


cdef class PeriodBegin:
    cdef long long index
    cdef long long oldest
    cdef long long fetched
    cdef long long computed
    # The next output tile to be stored.
    cdef long long stored
    # Whether `a` of the step that is fetched next has been recorded.
    cdef bint has_a
    # By buffer and operand: the next step that is loaded there.
    cdef dict loading


cdef class SkippedSteps(ProductTiles):
    cdef readonly OpLog log
    cdef object rounded
    cdef readonly long long period
    cdef PeriodBegin begun
    # The buffers by the address of each of the pair, and the output tiles by that of their block.
    cdef dict buffers
    cdef dict output_at
    # By number of the output tile: its sums, and its bytes once it is stored.
    cdef dict sums
    cdef dict stored

    cdef OutputTile output(self, long long number)
    cdef unsigned int compute(self, long long index) except? 0xffffffff
    cdef int finish(self, long long number) except -1
    cdef int emit(
        self, RecordOfStep step, long long steps, long long moved_ps, bint is_last
    ) except -1
    cdef int rename_token(self, TileToken token, set outputs) except -1
    cdef StreamedTile tile_of(self, DmaRequest request)
    cdef int rename_request(
        self, DmaRequest request, long long outputs, bint is_written
    ) except -1
