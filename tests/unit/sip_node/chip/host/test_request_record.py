"""The records of requests of a host: their times and bytes."""

from zlib import crc32

from runtime.core.requests import MemoryReadMsg, MemoryWriteMsg, MmuMapMsg, PeDmaMsg
from runtime.core.trace import Operand, OpRecord
from sip_node.chip.host.request_record import record_of

DATA = b"abcd"


def test_a_write_leaves_its_bytes_in_memory():
    record = record_of(MemoryWriteMsg(64, 4, DATA), 5, 9, b"")
    assert record == OpRecord(
        engine="host",
        name="MemoryWriteMsg",
        start_ps=5,
        end_ps=9,
        address=64,
        nbytes=4,
        shape=(4,),
        dtype=record.dtype,
        checksum=crc32(DATA),
    )
    assert record.dtype


def test_a_read_has_bytes_of_memory_as_its_input():
    record = record_of(MemoryReadMsg(64, 4), 5, 9, DATA)
    assert record.inputs == (Operand(64, (4,), record.dtype),)
    assert (record.checksum, record.shape, record.nbytes) == (crc32(DATA), (4,), 4)


def test_a_copy_of_a_pe_has_its_place_and_no_bytes_of_the_host():
    record = record_of(PeDmaMsg(0, 1, "write", 128, 32), 5, 9, b"")
    assert record == OpRecord("host", "PeDmaMsg", 5, 9, address=128, nbytes=32)


def test_a_command_without_bytes_has_times_only():
    record = record_of(MmuMapMsg(0, ()), 5, 9, b"")
    assert record == OpRecord("host", "MmuMapMsg", 5, 9)
