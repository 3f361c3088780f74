"""The slots of a chunk cover it once, and none is longer than the scratch for it."""

import numpy as np
import pytest

from runtime.device.products.gather_slots import SlotCut
from runtime.device.products.product_plan import divided


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 33, 97, 130])
@pytest.mark.parametrize("in_rows", [True, False])
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_slots_cover_a_chunk_once_and_fit(length: int, in_rows: bool, parts: int) -> None:
    cut = SlotCut(pes=8, unit=64, length=length, in_rows=in_rows)
    if length < 32 * parts:
        parts = 1
    spans = tuple(divided(length, parts, 32 if parts > 1 else 1))
    chunk, copied = (100, 1100), np.zeros((length, 1100), int)
    slots = cut.slots(spans, chunk)
    assert len(slots) == 8
    for slot in slots:
        copied[slice(*slot.free), slice(*slot.depth)] += 1
    assert (copied[:, 100:] == 1).all()
    assert not copied[:, :100].any()
    part = max(stop - start for start, stop in spans)
    assert max(slot.elements for slot in slots) <= cut.longest(part, parts, 1000)


def test_few_rows_are_cut_into_pieces_of_whole_tiles_so_that_more_pes_copy() -> None:
    slots = SlotCut(pes=8, unit=64, length=3, in_rows=True).slots(((0, 3),), (0, 1024))
    halves = [((row, row + 1), depth) for row in range(3) for depth in ((0, 512), (512, 1024))]
    assert [tuple(slot) for slot in slots[:6]] == halves
    assert [slot.elements for slot in slots[6:]] == [0, 0]


def test_all_pes_copy_rows_of_the_depth_though_they_are_fewer_than_those_of_their_tiles() -> None:
    slots = SlotCut(pes=8, unit=64, length=300, in_rows=False).slots(((0, 300),), (256, 384))
    assert [slot.depth for slot in slots] == [(256 + 16 * pe, 272 + 16 * pe) for pe in range(8)]
