"""The C types of data_landing.py."""

cimport cython

from sip_node.chip.fabric cimport packet as packets
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.chip.pe.read_window cimport ReadWindow
from sip_node.kernel.component cimport Component
from sip_node.kernel.outlet cimport Outlet


cdef class DataLanding(Component):
    cdef FifoServer _port
    cdef Outlet _outlet
    cdef ReadWindow _window
    cdef object _landed
    cdef dict writes
    cdef dict come

    cpdef void forward(self, FabricTransfer write) except *

    @cython.locals(
        port=FifoServer, data=FabricTransfer, write=FabricTransfer, come=cython.longlong,
        complete=cython.bint, head_ps=cython.longlong, start_ps=cython.longlong,
    )
    cpdef void accept(self, Packet packet, long long tail_ps) except *
