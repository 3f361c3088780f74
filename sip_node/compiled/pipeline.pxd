"""The parts that the steps of a product pass, and its tiles: see pipeline.pyx."""

from sip_node.chip.fabric.hops cimport Hops
from sip_node.chip.memory.memory_packets cimport MemoryPackets
from sip_node.chip.pe.dma cimport PeDma
from sip_node.chip.pe.compute.fetch_store cimport FetchPort, StorePort
from sip_node.chip.pe.compute.gemm cimport PeGemm
from sip_node.chip.pe.compute.operand_tiles cimport StreamedTile
from sip_node.chip.pe.compute.tile_dma cimport TileLoad
from sip_node.chip.pe.compute.tile_token cimport StepTokens
from sip_node.kernel.tile_data cimport TileData


cdef class Pipeline:
    cdef readonly object composite
    cdef readonly StepTokens source
    cdef readonly PeDma dma
    cdef readonly TileLoad load
    cdef readonly FetchPort fetch
    cdef readonly PeGemm gemm
    cdef readonly StorePort store
    cdef readonly Hops fabric
    cdef readonly list memories
    cdef list slots
    cdef list servers

    cdef dict actors(self)


cdef class ProductTiles:
    cdef readonly Pipeline pipeline
    cdef readonly long long depths
    # By number: the blocks of the output tiles.
    cdef list blocks
    # By tile, the operands that are loaded already.
    cdef dict kept
    cdef long long kept_bytes

    cdef object tile(self, long long index, bint is_b)
    cdef object block_made(self, long long output)
    cdef object block_of(self, long long output)
    cdef bytes content(self, StreamedTile tile)
    cdef TileData read(self, long long index, bint is_b)
    cdef TileData loaded(self, long long index, bint is_b, int buffer)
    cdef MemoryPackets memory_at(self, long long address)
    cdef int write(self, long long output, bytes content) except -1
    cdef long long steps_alike(self, long long first, long long period) except -1
    cdef object kind_of(self, long long index, bint is_b)
    cdef object kind_of_block(self, object block)
