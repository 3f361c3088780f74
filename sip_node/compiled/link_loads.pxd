"""The loads of the servers of one SIP over time, in C: see link_loads.pyx."""


cdef class LinkLoads:
    cdef object recorder
    cdef list watched
