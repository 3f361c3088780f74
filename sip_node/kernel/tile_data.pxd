"""Tiles of operands in TCM, and the sums in accumulators, in C: see tile_data.pyx."""

cdef enum Element:
    # How the elements of a tile are read here: not at all, as halves, or as floats.
    OTHER
    HALF
    SINGLE


cdef class TileData:
    cdef readonly tuple inputs
    cdef readonly tuple shape
    cdef readonly str element
    cdef readonly long long nbytes
    cdef readonly unsigned int checksum
    # In row-major order; of another type than the two, the array is made at once.
    cdef bytes content
    cdef object array
    cdef object dtype
    cdef Element kind
    # The address of the elements, NULL for those that are not read here.
    cdef const char *elements


cdef class TileSums:
    cdef readonly tuple shape
    # An array or None, or while C adds to them, elements of float32 at `sums`.
    cdef object array
    cdef float *sums
    cdef bytearray summed

    cpdef int add(self, TileData a, TileData b) except -1
    cpdef unsigned int checksum(self) except? 0xffffffff
    cdef int begin_sums(self) except -1


cdef class WideTiles:
    cdef Py_ssize_t m, k, n
    cdef object a, b, product
    cdef double *a_elements
    cdef double *b_elements
    cdef double *products

    cdef bint multiply(self, TileData a, TileData b) except -1


cpdef TileData loaded_tile(
    tuple inputs, object dtype, long long nbytes, bytes content, unsigned int checksum
)
cpdef TileData cut_tile(
    object block, object dtype, long long nbytes, object data, Py_ssize_t row, Py_ssize_t column
)
