from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.model.tiles import TileSize
from sip_node.chip.pe.compute.tile_buffers import FreeList, RegisterFile, TileBuffers


def test_slots_are_used_in_turn() -> None:
    slots = FreeList(2)
    first, second = slots.take(), slots.take()
    assert not slots.available
    slots.free(second)
    slots.free(first)
    assert [slots.take(), slots.take()] == [second, first]


def test_a_waiter_is_called_when_a_slot_is_freed() -> None:
    slots, seen = FreeList(1), list[int]()
    slots.when_freed(lambda: seen.append(slots.take()))
    slots.free(slots.take())
    assert seen == [0]


@given(st.integers(1, 5), st.lists(st.integers(0, 9), max_size=40))
def test_the_slot_that_has_been_free_for_longest_is_taken_first(
    count: int, choices: list[int]
) -> None:
    slots, free, taken = FreeList(count), deque(range(count)), list[int]()
    for choice in choices:
        # Even numbers take a slot while one is free, odd numbers free one of those taken.
        if choice % 2 == 0 and free:
            taken.append(slots.take())
            assert taken[-1] == free.popleft()
        elif taken:
            free.append(taken.pop(choice % len(taken)))
            slots.free(free[-1])
        assert (slots.available, slots.unused) == (bool(free), len(free) == count)


def test_no_more_slots_are_taken_than_there_are() -> None:
    slots = FreeList(1)
    slots.take()
    with pytest.raises(IndexError, match="no slot is free"):
        slots.take()


@pytest.mark.parametrize("index", [0, 1, -1])
def test_only_a_slot_that_is_taken_is_freed(index: int) -> None:
    with pytest.raises(AssertionError, match=f"slot {index} is free already"):
        FreeList(1).free(index)


@pytest.mark.parametrize("kind", ["sets", "accumulators", "biases"])
def test_a_register_file_is_unused_when_all_of_it_is(kind: str) -> None:
    registers = RegisterFile(0, TileSize(4, 4, 4))
    taken = getattr(registers, kind).take()
    assert not registers.unused
    getattr(registers, kind).free(taken)
    assert registers.unused


def test_buffers_are_unused_when_operands_and_results_are() -> None:
    buffers = TileBuffers(0, TileSize(4, 4, 4), 3)
    slots = [buffers.operands.take(), buffers.operands.take(), buffers.results.take()]
    assert (slots, buffers.unused) == ([0, 1, 0], False)
