"""The checksum of bytes, in C too, is that of zlib, for blocks of any length."""

from zlib import crc32 as reference

from runtime.core.rng import seeded
from sip_node.kernel.checksums import checksum_of


def test_blocks_of_every_length_have_the_checksum_of_zlib() -> None:
    content = seeded(14).randbytes(5000)
    for length in (*range(300), 1023, 4096, 4097, 5000):
        for start in (0, 1, 7):
            block = content[start : start + length]
            assert checksum_of(block) == reference(block)


def test_zeros_and_ones_have_the_checksum_of_zlib() -> None:
    for block in (bytes(64), bytes(4096), b"\xff" * 64, b"\xff" * 4111):
        assert checksum_of(block) == reference(block)
