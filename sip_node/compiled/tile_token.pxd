"""A step of a product on its route, in C: see tile_token.pyx."""

from sip_node.compiled.calendar cimport Actor
from sip_node.compiled.tile_data cimport TileData


cdef class Stage(Actor):
    # Whether `take` is what a token calls: no class in Python has another `accept`.
    cdef bint takes_in_c

    cdef int take(self, Token token) except -1


cdef class StepShape:
    cdef readonly object size
    cdef readonly long long step_ps
    cdef readonly object macs
    cdef readonly str accumulator
    cdef readonly long long output_bytes
    cdef readonly dict inputs


cdef class OutputTile:
    cdef readonly tuple shape
    cdef readonly TileData start
    cdef readonly TileData bias
    cdef readonly object target
    cdef readonly list memory
    cdef public object accumulator
    cdef public long long address
    cdef public int bias_row
    cdef public int buffer
    # The sum: an array or None, or while C adds to it, elements of float32 at `sums`.
    cdef object array
    cdef float *sums
    cdef bytearray summed
    # The result as it was stored: its buffer, and its bytes, empty in a run without data.
    cdef object stored
    cdef bytes content

    cdef int begin_sums(self) except -1
    cdef unsigned int checksum(self) except? 0xffffffff


cdef class Token:
    cdef public object gemm
    cdef public object shape
    cdef public tuple sources
    cdef public object output
    cdef public tuple route
    cdef public object a
    cdef public object b
    # The spans of its tile, and the class to make it of.
    cdef object tile_type
    cdef object rows
    cdef object depth
    cdef object columns
    # The tiles of its operands where they are known already, else None: those of `sources`.
    cdef object tile_a
    cdef object tile_b
    cdef public bint first
    cdef public bint last
    cdef public int buffer
    cdef public int passed
    cdef public int loading
    cdef public int registers
    # The number of the step in its product.
    cdef public long long index
    cdef public long long submitted_ps
    # When it came to its present stage.
    cdef public long long arrived_ps
    cdef public long long ready_ps
    cdef public long long open_ps
    cdef public long long turn_ps
    cdef public long long fetch_ps
    cdef public long long fetched_ps

    cdef int go_on(self) except -1
