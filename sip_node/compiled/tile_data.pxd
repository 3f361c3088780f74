"""Tiles of operands in TCM, in C: see tile_data.pyx."""

cdef enum Element:
    # How the elements of a tile are read here: not at all, as halves, or as floats.
    OTHER
    HALF
    SINGLE


cdef class TileData:
    cdef readonly object block
    cdef readonly long long nbytes
    cdef readonly unsigned int checksum
    # The fields of `block`, and `(block,)`: records have them.
    cdef tuple shape
    cdef str element
    cdef tuple inputs
    # The elements: an array or None, or bytes of which no array has been made yet.
    cdef object array
    cdef bytes content
    cdef object dtype
    cdef Element kind
    # Their address, NULL for those that are not read here.
    cdef const char *elements


cdef class BufferBlocks:
    # The blocks of the scheduler's buffers that hold tiles of one shape and type.
    cdef tuple shape
    cdef str element
    cdef long long nbytes
    cdef object dtype
    cdef Element kind
    # By operand and index of the buffer, each in a tuple; None until the first use.
    cdef list blocks


cdef TileData loaded_tile(BufferBlocks buffers, tuple inputs, bytes content, unsigned int checksum)
cdef Element kind_of(str element)
