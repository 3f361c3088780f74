"""The CRC-32 of the bytes of an operation, in C: see checksums.pyx."""

cdef unsigned int crc32_of(const void *content, size_t nbytes) noexcept nogil
cpdef unsigned int checksum_of(bytes data) except? 0
