"""The stages of products in C: their free slots, and their records against those of the reference.

Whole products run with both cores in the tests of stored digests.
"""

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.chip.pe.tile_buffers import ReferenceFreeList

if not IS_COMPILED:
    pytest.skip("the compiled core does not run", allow_module_level=True)

from hypothesis import given
from hypothesis import strategies as st

from sip_node.compiled.tile_stages import Slots


@given(st.integers(1, 5), st.lists(st.integers(0, 9), max_size=40))
def test_slots_are_taken_in_the_order_of_the_reference(count: int, choices: list[int]) -> None:
    slots, reference = Slots(count), ReferenceFreeList(count)
    freed, taken = list[int](), list[int]()
    slots.when_freed(lambda: freed.append(1))
    for choice in choices:
        # Even numbers take a slot while one is free, odd numbers free one of those taken.
        if choice % 2 == 0 and reference.available:
            taken.append(reference.take())
            assert slots.take() == taken[-1]
        elif taken:
            index = taken.pop(choice % len(taken))
            reference.free(index)
            slots.free(index)
        assert slots.available == bool(reference.available)
        assert slots.unused == reference.unused
    assert len(freed) <= len(choices)


def test_no_more_slots_are_taken_than_there_are() -> None:
    slots = Slots(1)
    slots.take()
    with pytest.raises(IndexError, match="no slot is free"):
        slots.take()


@pytest.mark.parametrize("index", [0, 1, -1])
def test_only_a_slot_that_is_taken_is_freed(index: int) -> None:
    with pytest.raises(AssertionError, match=f"slot {index} is free already"):
        Slots(1).free(index)
