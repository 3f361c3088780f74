"""The CRC-32 of the bytes of a tile: see checksum.pyx."""

cdef unsigned int crc32_of(const void *content, size_t nbytes) noexcept nogil
