"""The records of requests and commands of a host, and the bytes that a request may have."""

from typing import NamedTuple, cast
from zlib import crc32

import pytest

from runtime.core.errors import PhysAddrError
from runtime.core.requests import MemoryReadMsg, MemoryWriteMsg, MmuMapMsg, PeDmaMsg
from runtime.core.run_tables import COMMANDS
from runtime.core.trace import Operand, OpRecord
from runtime.model.addresses import AddressMap
from runtime.model.graph import ChipGraph
from runtime.model.topology import Topology
from sip_node.chip.context import ChipContext
from sip_node.chip.host.request_record import check_request, record_command, record_of
from sip_node.chip.host.streams import Command
from sip_node.chip.mapping.memory_map import MemoryMap
from tests.support.recorded import Recorded
from tests.support.topologies import small

DATA = b"abcd"
TOPOLOGY = small()
ADDRESSES = AddressMap(TOPOLOGY)
MEMORIES = MemoryMap(ADDRESSES, ChipGraph(TOPOLOGY))


class CheckedMemories(NamedTuple):
    """The part of a chip that a request is checked against."""

    topology: Topology

    def locate(self, address: int) -> tuple[int, int]:
        return MEMORIES.locate(address)


CHIP = cast("ChipContext", CheckedMemories(TOPOLOGY))


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


@pytest.mark.parametrize("nbytes", [1, 64])
def test_a_request_stays_in_the_memory_of_its_first_byte(nbytes: int):
    last = ADDRESSES.pe_hbm_addr(0, 0, 1, 0) - nbytes
    check_request(MemoryReadMsg(last, nbytes), CHIP, "copy")
    with pytest.raises(PhysAddrError, match=f"copy: {nbytes + 1} bytes from there run past the"):
        check_request(MemoryReadMsg(last, nbytes + 1), CHIP, "copy")
    with pytest.raises(ValueError, match=r"copy: .* a request moves at least one byte"):
        check_request(MemoryReadMsg(last, 0), CHIP, "copy")


def test_a_copy_of_a_pe_stays_in_its_tcm_and_a_command_without_bytes_is_not_checked():
    address, end = ADDRESSES.pe_hbm_addr(0, 0, 0, 0), TOPOLOGY.tcm_bytes
    for offset in (0, end - 32):
        check_request(PeDmaMsg(0, 0, "write", address, 32, offset), CHIP, "copy")
    for offset in (-1, end - 31):
        with pytest.raises(ValueError, match=f"copy: .* which has {end:,} bytes"):
            check_request(PeDmaMsg(0, 0, "write", address, 32, offset), CHIP, "copy")
    check_request(MmuMapMsg(0, ()), CHIP, "mapping")


@pytest.mark.parametrize(
    ("requests", "kind"), [((MemoryReadMsg(64, 4), MmuMapMsg(0, ())), "MemoryReadMsg"), ((), "")]
)
def test_a_command_has_the_kind_of_its_first_request_and_its_times(
    requests: tuple[MemoryReadMsg | MmuMapMsg, ...], kind: str
):
    recorded = Recorded()
    command = Command(
        requests=requests,
        submitted_ps=10,
        stream=2,
        completed_ps=40,
        released_ps=30,
        number=5,
        why="copy of x",
        departed_ps=20,
        after=4,
        line="bench.py:7",
    )
    record_command(recorded.recorder, command)
    assert recorded.rows(COMMANDS) == [
        {
            "command": 5,
            "stream": 2,
            "kind": kind,
            "why": "copy of x",
            "line": "bench.py:7",
            "submitted_ps": 10,
            "departed_ps": 20,
            "begun_ps": 30,
            "end_ps": 40,
            "after": 4,
        }
    ]
