"""The parts that the steps of a product pass: see pipeline.pyx."""

from sip_node.chip.pe.dma cimport PeDma
from sip_node.chip.fabric.hops cimport Hops
from sip_node.compiled.step_tokens cimport TokenSource
from sip_node.compiled.tile_loads cimport LoadStage
from sip_node.compiled.tile_results cimport StoreStage
from sip_node.compiled.tile_stages cimport FetchStage, GemmStage


cdef class Pipeline:
    cdef readonly object composite
    cdef readonly TokenSource source
    cdef readonly PeDma dma
    cdef readonly LoadStage load
    cdef readonly FetchStage fetch
    cdef readonly GemmStage gemm
    cdef readonly StoreStage store
    cdef readonly Hops fabric
    cdef readonly list memories
    cdef list slots
    cdef list servers

    cdef dict actors(self)
