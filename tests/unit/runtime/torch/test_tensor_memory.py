import gc
from collections.abc import Generator

import pytest

from runtime.core.errors import AllocationError
from runtime.model.addresses import AddressMap
from runtime.model.placement import ShardSpec
from runtime.torch.tensor_memory import Allocation, TensorMemory
from tests.support.topologies import small

TOPOLOGY = small()
SLICE = TOPOLOGY.hbm_slice_bytes


@pytest.fixture(autouse=True)
def _only_the_collections_of_the_test() -> Generator[None]:
    gc.disable()
    yield
    gc.enable()


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


def test_dropped_memory_is_free_at_the_next_allocation() -> None:
    memory = memory_of_sip_0()
    first = allocate(memory, 100)
    taken = addresses(first)
    del first
    assert addresses(allocate(memory, 50)) == taken


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
