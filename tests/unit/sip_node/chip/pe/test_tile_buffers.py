import pytest

from runtime.model.tiles import TileSize
from sip_node.chip.pe.tile_buffers import FreeList, RegisterFile, TileBuffers


def test_places_are_used_in_turn() -> None:
    places = FreeList(2)
    first, second = places.take(), places.take()
    assert not places.available
    places.free(second)
    places.free(first)
    assert [places.take(), places.take()] == [second, first]


def test_who_waits_for_a_place_is_called_when_one_falls_free() -> None:
    places, seen = FreeList(1), list[int]()
    places.when_freed(lambda: seen.append(places.take()))
    places.free(places.take())
    assert seen == [0]


def test_a_place_is_given_back_once() -> None:
    places = FreeList(2)
    with pytest.raises(AssertionError, match="place 1 is free already"):
        places.free(1)


@pytest.mark.parametrize("kind", ["sets", "accumulators", "biases"])
def test_a_register_file_is_unused_when_all_of_it_is(kind: str) -> None:
    registers = RegisterFile(0, TileSize(4, 4, 4))
    taken = getattr(registers, kind).take()
    assert not registers.unused
    getattr(registers, kind).free(taken)
    assert registers.unused


def test_buffers_are_unused_when_operands_and_results_are() -> None:
    buffers = TileBuffers(0, TileSize(4, 4, 4), 3)
    places = [buffers.operands.take(), buffers.operands.take(), buffers.results.take()]
    assert (places, buffers.unused) == ([0, 1, 0], False)
