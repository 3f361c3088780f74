"""The state of matrix products: see product_walk.pyx."""

from sip_node.kernel.calendar cimport Calendar, Event, Key
from sip_node.chip.pe.dma cimport DmaRequest
from sip_node.chip.fabric.hops cimport Hops
from sip_node.compiled.pipeline cimport Pipeline
from sip_node.chip.pe.compute.tile_buffers cimport FreeList
from sip_node.chip.pe.compute.tile_token cimport OutputTile, TileToken
from sip_node.compiled.transfer_walk cimport TransferWalk


cdef class ProductWalk(TransferWalk):
    cdef readonly long long foreign_ps
    cdef readonly list tokens
    # (request, its pipeline), by number.
    cdef readonly list requests
    cdef Calendar calendar
    cdef list pipelines
    # What the events of an actor belong to, by its number.
    cdef dict parts

    cdef int walk(self) except -1
    cdef int slots(self, FreeList slots) except -1
    cdef int stages(self, Pipeline pipeline) except -1
    cdef int token(self, TileToken token) except -1
    cdef int output(self, OutputTile output) except -1
    cdef int engine(self, Pipeline pipeline) except -1
    cdef int request(self, DmaRequest request, key, Pipeline pipeline) except -1
    cdef int events(self) except -1
    cdef int fabric(self, Hops fabric) except -1
    cdef bint is_own(self, Event *event, object subject) except -1
    cdef int event(self, Key *key) except -1
    cdef int subject(self, Event *event, object part, object subject) except -1
