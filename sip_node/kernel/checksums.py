"""The CRC-32 of the bytes of an operation."""

from zlib import crc32


def checksum_of(data: bytes) -> int:
    """The checksum of `zlib.crc32`."""
    return crc32(data)
