"""The parts that the steps of a product pass: see pipeline.pyx."""

from sip_node.chip.pe.dma cimport PeDma
from sip_node.chip.fabric.hops cimport Hops
from sip_node.chip.pe.step_tokens cimport StepTokens
from sip_node.chip.pe.tile_dma cimport TileLoad
from sip_node.chip.pe.fetch_store cimport FetchPort, StorePort
from sip_node.chip.pe.gemm cimport PeGemm


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
