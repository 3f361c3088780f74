"""The first-fit allocator, the memories of a SIP, virtual addresses."""

import pytest

from runtime.core.errors import AllocationError
from runtime.model.allocation import (
    VIRTUAL_BASE,
    RangeAllocator,
    SipMemories,
    VirtualAllocator,
    collective_scratch_offset,
    kernel_scratch_offset,
    ring_offset,
    transfer_scratch_offset,
    virtual_bytes,
)
from tests.support.topologies import variant

TOPOLOGY = variant()
MIB = 1 << 20


def test_the_lowest_range_that_fits_is_allocated() -> None:
    memory = RangeAllocator("tcm", 1024)
    first, second, third = (memory.alloc(256) for _ in range(3))
    memory.free(first)
    assert (first, second, third) == (0, 256, 512)
    assert memory.alloc(512 - 256) == 0
    memory.free(second)
    assert memory.alloc(128) == 256


def test_the_gap_that_alignment_leaves_can_be_used() -> None:
    memory = RangeAllocator("tcm", 1024)
    memory.reserve(0, 8)
    assert memory.alloc(8, align=256) == 256
    assert memory.alloc(8, align=8) == 8


def test_freed_neighbours_become_one_range() -> None:
    memory = RangeAllocator("tcm", 1024)
    offsets = [memory.alloc(256) for _ in range(4)]
    for offset in (offsets[0], offsets[2], offsets[3], offsets[1]):
        memory.free(offset)
    assert memory.free_ranges == ((0, 1024),)


def test_exhaustion_names_the_memory_and_what_is_left() -> None:
    memory = RangeAllocator("hbm of sip 0 cube 1 pe 2", 1024)
    memory.alloc(512)
    with pytest.raises(AllocationError) as raised:
        memory.alloc(1000)
    assert str(raised.value) == (
        "hbm of sip 0 cube 1 pe 2: cannot allocate 1,000 bytes: "
        "512 of 1,024 bytes are free, the largest range has 512 (alignment 64)"
    )


def test_a_reservation_is_refused_where_something_lies() -> None:
    memory = RangeAllocator("sram", 1024)
    memory.alloc(100)
    with pytest.raises(AllocationError, match="offset 0x40 overlaps an allocated one"):
        memory.reserve(64, 64)
    with pytest.raises(AllocationError, match=r"offset 0x3c1 exceeds the memory of 1,024 bytes"):
        memory.reserve(961, 64)
    memory.reserve(960, 64)
    assert memory.free_bytes == 1024 - 100 - 64


@pytest.mark.parametrize("nbytes", [0, -1])
def test_a_range_has_at_least_one_byte(nbytes: int) -> None:
    with pytest.raises(AllocationError, match="at least one byte"):
        RangeAllocator("tcm", 64).alloc(nbytes)


def test_what_was_not_allocated_cannot_be_freed() -> None:
    memory = RangeAllocator("tcm", 64)
    offset = memory.alloc(8)
    memory.free(offset)
    with pytest.raises(AllocationError, match="nothing was allocated there"):
        memory.free(offset)


def test_a_pe_has_its_tcm_without_scratch_and_scheduler_part() -> None:
    memories = SipMemories(TOPOLOGY, 1)
    assert memories.tcm(0, 0).nbytes == transfer_scratch_offset(TOPOLOGY) == 9 * MIB
    assert collective_scratch_offset(TOPOLOGY) == 10 * MIB
    assert kernel_scratch_offset(TOPOLOGY) == 11 * MIB
    assert memories.hbm(0, 0).nbytes == 6 << 30
    assert memories.sram(0).nbytes == 32 * MIB


def test_each_pe_has_memories_of_its_own() -> None:
    memories = SipMemories(TOPOLOGY, 1)
    assert (
        memories.hbm(0, 0).alloc(64)
        == memories.hbm(0, 1).alloc(64)
        == memories.hbm(1, 0).alloc(64)
        == 0
    )
    assert memories.hbm(0, 0).alloc(64) == 64
    assert memories.hbm(3, 2).memory == "hbm of sip 1 cube 3 pe 2"


def test_rings_lie_at_the_top_where_their_peers_expect_them() -> None:
    memories = SipMemories(TOPOLOGY, 0)
    assert (
        memories.reserve_rings("tcm", 0, 3, MIB) == ring_offset(TOPOLOGY, "tcm", 3, MIB) == 8 * MIB
    )
    assert memories.reserve_rings("hbm", 0, 3, MIB) == (6 << 30) - MIB


def test_rings_in_sram_lie_one_below_the_other() -> None:
    memories = SipMemories(TOPOLOGY, 0)
    assert [memories.reserve_rings("sram", 0, pe, MIB) for pe in range(8)] == [
        (31 - pe) * MIB for pe in range(8)
    ]


def test_a_tensor_never_gets_the_bytes_of_a_ring() -> None:
    memories = SipMemories(TOPOLOGY, 0)
    memories.reserve_rings("tcm", 0, 0, 3 * MIB)
    assert memories.tcm(0, 0).alloc(6 * MIB) == 0
    with pytest.raises(AllocationError, match="tcm of sip 0 cube 0 pe 0"):
        memories.tcm(0, 0).alloc(64)


def test_rings_are_refused_where_a_tensor_lies_or_the_memory_ends() -> None:
    memories = SipMemories(TOPOLOGY, 0)
    memories.tcm(0, 0).alloc(8 * MIB)
    with pytest.raises(AllocationError, match="overlaps"):
        memories.reserve_rings("tcm", 0, 0, 3 * MIB)
    with pytest.raises(
        AllocationError, match="sram of sip 0 cube 0: cannot allocate 8,388,608 bytes"
    ):
        memories.reserve_rings("sram", 0, 4, 8 * MIB)


def test_virtual_addresses_are_pages_from_the_base() -> None:
    virtual = VirtualAllocator("sip 0", 64 * MIB)
    assert virtual.alloc(1) == VIRTUAL_BASE == 0x1_0000_0000
    assert virtual.alloc(4097) == VIRTUAL_BASE + 4096
    assert virtual.alloc(1) == VIRTUAL_BASE + 3 * 4096
    virtual.free(VIRTUAL_BASE)
    assert virtual.alloc(4096) == VIRTUAL_BASE


def test_virtual_memory_ends() -> None:
    virtual = VirtualAllocator("sip 0", 64 * MIB)
    virtual.alloc(64 * MIB)
    with pytest.raises(AllocationError, match="virtual memory of sip 0"):
        virtual.alloc(1)


@pytest.mark.parametrize("slice_gib", [1, 6, 16])
def test_virtual_memory_is_larger_than_the_memory_of_a_sip(slice_gib: int) -> None:
    topology = variant(hbm__slice_gib=slice_gib)
    memory = topology.cubes * topology.pes_per_cube * topology.hbm_slice_bytes
    assert virtual_bytes(topology) >= 2 * memory
    # The data pointers of PyTorch's tensors are virtual addresses added to 2^46, below the
    # addresses of the host's own memory, which end at 2^47.
    assert VIRTUAL_BASE + virtual_bytes(topology) < 1 << 46


def test_as_many_small_tensors_as_a_program_can_hold_have_a_page() -> None:
    assert virtual_bytes(variant()) // 4096 > 16_000_000
