import pytest

from runtime.model.tiles import TileSize
from sip_node.chip.pe.tile_buffers import FreeList, RegisterFile, TileBuffers


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


def test_a_slot_is_freed_once() -> None:
    slots = FreeList(2)
    with pytest.raises(AssertionError, match="slot 1 is free already"):
        slots.free(1)


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
