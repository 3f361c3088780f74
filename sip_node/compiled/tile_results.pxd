"""The stages that store results and write them to memory, in C: see tile_results.pyx."""

from sip_node.chip.pe.dma cimport DmaRequest, PeDma
from sip_node.chip.memory.memory cimport Memory
from sip_node.compiled.serial_stage cimport PortStage
from sip_node.chip.pe.tile_buffers cimport FreeList
from sip_node.compiled.tile_token cimport OutputTile, Stage, Token


cdef class StoreStage(PortStage):
    cdef object buffers
    # By buffer, shape and type: what results are stored to.
    cdef dict blocks
    cdef object finish
    cdef object tcm
    # Of a TCM whose `write` is not replaced, else None.
    cdef Memory memory
    cdef long long memory_base
    cdef FreeList accumulators
    cdef FreeList results
    # Of the token that the port serves: where its tile goes, its bytes, the begin of the store.
    cdef object target
    cdef long long nbytes
    cdef long long start_ps

    cdef bint find_target(self, Token token, OutputTile output) except -1
    cdef object block(self, OutputTile output, str element)
    cdef int end(self, Token token) except -1
    cdef int write(self, bytes content) except -1


cdef class TileWriteRequest(DmaRequest):
    # The token whose result is written.
    cdef WriteStage stage
    cdef Token token


cdef class WrittenResult:
    cdef WriteStage stage
    cdef Token token


cdef class WriteStage(Stage):
    # The DMA engine where its `write` is that in C, else None.
    cdef PeDma dma
    cdef object write_pieces
    cdef FreeList results

    cdef int written(self, Token token) except -1
