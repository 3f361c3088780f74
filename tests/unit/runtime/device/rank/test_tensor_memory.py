import gc
from collections.abc import Generator
from threading import Thread

import pytest

from runtime.core.errors import AllocationError
from runtime.device.memory.storage import Storage
from runtime.device.rank.tensor_memory import Allocation, TensorMemory
from runtime.model.addresses import AddressMap
from runtime.model.placement import ShardSpec
from runtime.model.schema.topology_schema import GIB
from tests.support.own_garbage import only_own_garbage
from tests.support.topologies import small, variant

TOPOLOGY = small()
SLICE = TOPOLOGY.hbm_slice_bytes


@pytest.fixture(autouse=True)
def _only_the_collections_of_the_test() -> Generator[None]:
    with only_own_garbage():
        yield


def memory_of_sip_0() -> TensorMemory:
    return TensorMemory(TOPOLOGY, 0, AddressMap(TOPOLOGY))


def copy_on(pe: int, nbytes: int) -> ShardSpec:
    return ShardSpec(sip=0, cube=0, pe=pe, offset_bytes=0, nbytes=nbytes, spans=((0, nbytes),))


def allocate(memory: TensorMemory, nbytes: int, pes: int = 1) -> Allocation:
    return memory.allocate([copy_on(pe, nbytes) for pe in range(pes)], nbytes)


def lost(memory: TensorMemory, nbytes: int, pes: int = 1) -> tuple[int, int]:
    """The addresses of memory that only the collector finds."""
    allocation = allocate(memory, nbytes, pes)
    cycle: list[object] = [allocation]
    cycle.append(cycle)
    return allocation.address, allocation.shards[0].address


def addresses(allocation: Allocation) -> tuple[int, int]:
    return allocation.address, allocation.shards[0].address


def test_dropped_memory_is_taken_over_by_the_next_allocation_of_equal_shards() -> None:
    memory = memory_of_sip_0()
    first = allocate(memory, 100)
    taken = addresses(first)
    del first
    assert addresses(allocate(memory, 50)) != taken
    assert addresses(allocate(memory, 100)) == taken


def test_shards_begin_at_multiples_of_the_bytes_of_their_layout() -> None:
    memory = memory_of_sip_0()
    specs = [copy_on(pe, 100) for pe in range(2)]
    first, *others = [memory.allocate(specs, 100) for _ in range(3)]
    layout = memory.layout(specs, 100, align=2048)
    others += [memory.allocate_as(layout) for _ in range(2)]
    for pe in range(2):
        begin = first.shards[pe].address
        assert [each.shards[pe].address - begin for each in others] == [128, 256, 2048, 4096]


def test_tensors_with_equal_shards_share_a_layout() -> None:
    memory = memory_of_sip_0()
    first, second, other = (allocate(memory, nbytes) for nbytes in (100, 100, 50))
    assert first.block.layout is second.block.layout
    assert first.block.layout is not other.block.layout
    assert memory.layout([copy_on(0, 50)], 50) is other.block.layout
    taken = addresses(first)
    layout = first.block.layout
    del first
    assert addresses(memory.allocate_as(layout)) == taken


def test_memory_is_in_use_as_long_as_something_refers_to_it() -> None:
    memory = memory_of_sip_0()
    first = allocate(memory, 100)
    other = first
    taken = addresses(first)
    del first
    second = allocate(memory, 100)
    assert addresses(second) != taken
    del other, second
    assert addresses(allocate(memory, 100)) == taken


def test_memory_that_another_thread_drops_is_not_used_again() -> None:
    memory = memory_of_sip_0()
    held = [allocate(memory, 100)]
    taken = addresses(held[0])
    thread = Thread(target=held.clear)
    thread.start()
    thread.join()
    assert addresses(allocate(memory, 100)) != taken
    assert memory.allocated_bytes == 100


def test_all_dropped_memory_is_free_before_an_allocation_that_needs_it() -> None:
    memory = memory_of_sip_0()
    halves = [allocate(memory, SLICE // 2) for _ in range(2)]
    halves.clear()
    assert allocate(memory, SLICE).shards[0].spec.nbytes == SLICE


def test_dropped_memory_is_free_for_receive_rings() -> None:
    memory = memory_of_sip_0()
    whole = allocate(memory, SLICE)
    with pytest.raises(AllocationError, match=r"overlaps an allocated one$"):
        memory.reserve_rings("hbm", 0, 0, 4096, 0)
    del whole
    memory.reserve_rings("hbm", 0, 0, 4096, 0)


@pytest.mark.parametrize("collected", [True, False])
def test_memory_in_a_cycle_is_not_used_again_whether_it_is_collected_or_not(
    *, collected: bool
) -> None:
    memory = memory_of_sip_0()
    _, taken = lost(memory, 4096)
    if collected:
        gc.collect()
    assert allocate(memory, 4096).shards[0].address == taken + 4096


@pytest.mark.parametrize("collected", [True, False])
def test_an_error_names_the_memory_that_cycles_keep(*, collected: bool) -> None:
    memory = memory_of_sip_0()
    lost(memory, 4096, pes=2)
    lost(memory, 1024)
    if collected:
        gc.collect()
    with pytest.raises(AllocationError) as raised:
        allocate(memory, SLICE, pes=2)
    assert str(raised.value) == (
        f"hbm of sip 0 cube 0 pe 0: cannot allocate {SLICE:,} bytes: {SLICE - 5120:,} of "
        f"{SLICE:,} bytes are free, the largest range has {SLICE - 5120:,} (alignment 64); "
        "2 tensors in reference cycles, which the program no longer uses, took 5,120 bytes; this "
        "memory is not used again, since garbage collection must not change addresses; break the "
        "cycles before the tensors are dropped, for example with weakref.ref"
    )


def test_an_error_of_a_memory_without_lost_tensors_does_not_mention_cycles() -> None:
    memory = memory_of_sip_0()
    lost(memory, 4096)
    with pytest.raises(AllocationError, match=r"\(alignment 64\)$"):
        memory.allocate([copy_on(1, SLICE + 1)], SLICE + 1)


def test_receive_rings_without_room_name_the_memory_that_cycles_keep() -> None:
    memory = memory_of_sip_0()
    lost(memory, SLICE)
    with pytest.raises(AllocationError, match="1 tensor in reference cycles"):
        memory.reserve_rings("hbm", 0, 0, 4096, 0)


def test_a_failed_allocation_takes_no_memory() -> None:
    memory = memory_of_sip_0()
    last = allocate(memory, 64, pes=2)
    taken = addresses(last)
    del last
    # PE 0 has room for its shard, PE 1 has not.
    with pytest.raises(AllocationError, match="pe 1: cannot allocate"):
        memory.allocate([copy_on(0, 64), copy_on(1, SLICE + 1)], 64)
    assert addresses(allocate(memory, 64)) == taken


class TestTheCache:
    def test_memory_is_taken_over_with_its_name_and_its_mapping(self) -> None:
        memory = memory_of_sip_0()
        first = Storage("first", allocate(memory, 100))
        taken = (first.address, first.shards)
        assert [request.cube for request in first.map_requests([(0, 0)])] == [0]
        del first
        again = Storage("second", allocate(memory, 100))
        assert ((again.address, again.shards), again.name) == (taken, "first")
        assert again.map_requests([(0, 0)]) == []
        other = Storage("third", allocate(memory, 100))
        assert (other.name, len(other.map_requests([(0, 0)]))) == ("third", 1)

    def test_the_order_in_which_tensors_die_has_no_effect(self) -> None:
        def next_address(order: list[int]) -> int:
            memory = memory_of_sip_0()
            tensors = {number: allocate(memory, 100) for number in range(3)}
            for number in order:
                del tensors[number]
            return allocate(memory, 100).address - allocate(memory, 100).address

        assert next_address([0, 2]) == next_address([2, 0])

    def test_a_full_memory_is_freed_of_the_cache_after_a_synchronisation(self) -> None:
        waits: list[int] = []
        memory = TensorMemory(TOPOLOGY, 0, AddressMap(TOPOLOGY), lambda: waits.append(1))
        allocate(memory, SLICE // 2)
        assert not waits
        assert (memory.allocated_bytes, memory.reserved_bytes) == (0, SLICE // 2)
        kept = allocate(memory, SLICE)
        assert (len(waits), memory.reserved_bytes, memory.peak_bytes) == (1, SLICE, SLICE)
        del kept
        memory.empty_cache()
        memory.empty_cache()
        assert (len(waits), memory.reserved_bytes, memory.reserved_peak_bytes) == (2, 0, SLICE)
        memory.reset_peak()
        assert (memory.peak_bytes, memory.reserved_peak_bytes) == (0, 0)


def test_tensors_fill_all_memory_of_a_sip_and_the_next_one_is_out_of_memory_of_a_slice() -> None:
    topology = variant()
    slices = topology.cubes * topology.pes_per_cube
    assert slices * topology.hbm_slice_bytes == 768 * GIB
    memory = TensorMemory(topology, 0, AddressMap(topology))
    shares = [
        ShardSpec(
            sip=0,
            cube=index // topology.pes_per_cube,
            pe=index % topology.pes_per_cube,
            offset_bytes=index * (8 * GIB // slices),
            nbytes=8 * GIB // slices,
            spans=((0, 1),),
        )
        for index in range(slices)
    ]
    kept = [memory.allocate(shares, 8 * GIB) for _ in range(96)]
    assert memory.allocated_bytes == 768 * GIB
    with pytest.raises(AllocationError, match=r"^hbm of sip 0 cube 0 pe 0: cannot allocate"):
        memory.allocate(shares, 8 * GIB)
    assert len({each.address for each in kept}) == 96
