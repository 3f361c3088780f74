"""The stages of a product's steps in C: see tile_stages.pyx."""

from sip_node.chip.pe.tile_buffers cimport FreeList
from sip_node.compiled.serial_stage cimport PortStage, SerialStage
from sip_node.compiled.service cimport Service
from sip_node.compiled.tile_data cimport TileData
from sip_node.compiled.tile_product cimport TileProducts
from sip_node.compiled.tile_token cimport OutputTile, StepShape, Token

cdef enum:
    # An initial value, both operands, a row of bias.
    MOST_FETCHES = 4


cdef class FetchStage(PortStage):
    cdef object registers
    cdef list addresses
    cdef FreeList sets
    cdef FreeList accumulators
    cdef FreeList buffers
    # The fetches of the token that the port serves, in their order.
    cdef Service fetched[MOST_FETCHES]
    cdef int fetches
    # -1 while it is not open, or while no step has its turn.
    cdef long long open_ps
    cdef long long turn_ps

    cdef int fetch(self, TileData tile) except -1
    cdef int end(self, Token token) except -1
    cdef int record(self, Token token, TileData tile, long long address) except -1


cdef class GemmStage(SerialStage):
    cdef public long long free_ps
    # Of the step in the engine: since when it has waited, and for what.
    cdef long long requested_ps
    cdef int waited_for
    cdef public long long busy_ps
    cdef public object macs
    cdef public long long tiles
    cdef public long long stall_dma_ps
    cdef public long long stall_fetch_ps
    cdef public long long stall_store_ps
    cdef object registers
    cdef FreeList sets
    cdef FreeList accumulators
    cdef TileProducts products

    cdef int request(self, Token token, long long now_ps) except -1
    cdef int count_stall(self, Token token, long long now_ps) except -1
    cdef int end(self, Token token, long long start_ps) except -1
    cdef int compute(self, Token token, OutputTile output) except -1
    cdef tuple inputs_of(self, Token token, OutputTile output, StepShape shape)
