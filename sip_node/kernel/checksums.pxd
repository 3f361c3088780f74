"""The CRC-32 of the bytes of an operation, in C."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from sip_node.compiled.checksum cimport crc32_of


cdef inline unsigned int checksum_of(bytes data) noexcept:
    return crc32_of(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
