"""The stages of a product's steps in C: see tile_stages.pyx."""

from sip_node.compiled.calendar cimport Actor, Calendar


cdef class Slots:
    cdef int count
    cdef int first
    cdef int filled
    # The free slots from `first` on, as a ring; and of each slot whether it is free.
    cdef int *order
    cdef char *is_free
    cdef list callbacks

    cdef int reserve(self) except -1
    cdef int release(self, int index) except -1


cdef class Token:
    cdef public object gemm
    cdef public object tile
    cdef public object shape
    cdef public object sources
    cdef public object output
    cdef public tuple route
    cdef public object a
    cdef public object b
    # The tiles of its operands where they are known already, else None: those of `sources`.
    cdef object tile_a
    cdef object tile_b
    cdef public bint first
    cdef public bint last
    cdef public int buffer
    cdef public int passed
    cdef public int loading
    cdef public int registers
    cdef public long long submitted_ps
    cdef public long long ready_ps
    cdef public long long open_ps
    cdef public long long turn_ps
    cdef public long long fetch_ps
    cdef public long long fetched_ps

    cdef int go_on(self) except -1


cdef class LoadedOperand:
    cdef LoadStage stage
    cdef Token token
    cdef object tile
    cdef object block
    cdef bint is_b


cdef class LoadStage:
    cdef Calendar calendar
    cdef object read
    cdef object staged
    cdef object data_of
    cdef object read_pieces
    cdef list addresses
    cdef object loading

    cdef int load(self, Token token, object source, object tile, bint is_b) except -1
    cdef int pass_on(self, Token token) except -1


cdef class FetchStage(Actor):
    cdef public object server
    cdef public long long records
    cdef Calendar calendar
    cdef int number
    cdef object record
    cdef object cube
    cdef object pe
    cdef object registers
    cdef list addresses
    cdef Slots sets
    cdef Slots accumulators
    cdef Slots buffers
    cdef object waiting
    cdef bint is_busy
    # -1 while it is not open, or while no step has its turn.
    cdef long long open_ps
    cdef long long turn_ps

    cdef int begin(self) except -1
    cdef object transfer(self, object tile, object address, long long *end_ps)
    cdef int end(self, Token token, list records) except -1


cdef class GemmStage(Actor):
    cdef public long long free_ps
    cdef public long long busy_ps
    cdef public object macs
    cdef public long long tiles
    cdef public long long stall_dma_ps
    cdef public long long stall_fetch_ps
    cdef public long long stall_store_ps
    cdef Calendar calendar
    cdef int number
    cdef object record
    cdef object cube
    cdef object pe
    cdef object registers
    cdef Slots sets
    cdef Slots accumulators
    cdef object waiting
    cdef bint is_busy

    cdef int begin(self) except -1
    cdef int count_stall(self, Token token, long long now_ps) except -1
    cdef int end(self, Token token, long long start_ps) except -1
    cdef object inputs_of(self, Token token, object output, object shape)
