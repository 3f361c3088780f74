"""The arithmetic of the GEMM engine in C: see tile_product.pyx."""

from sip_node.compiled.tile_data cimport Element, TileData
from sip_node.compiled.tile_token cimport OutputTile


cdef class WideTiles:
    cdef Py_ssize_t m
    cdef Py_ssize_t k
    cdef Py_ssize_t n
    cdef object a
    cdef object b
    cdef object product
    cdef double *a_elements
    cdef double *b_elements
    cdef double *products

    cdef bint multiply(self, const char *a, const char *b, Element kind) except -1


cdef class TileProducts:
    cdef object reference
    # By (m, k, n), and those of the last step.
    cdef dict wide_tiles
    cdef WideTiles last

    cdef bint add_step(self, OutputTile output, TileData a, TileData b, bint first) except -1
    cdef WideTiles wide(self, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n)
