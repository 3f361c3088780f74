"""Blocks of addresses as descriptors: what they describe, and how few they are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from kernbench.triton.indices.descriptors import BlockTransfer, any_used, stored_parts, transfer
from kernbench.triton.indices.index_values import Affine, IndexValue
from runtime.core.dtypes import float32
from runtime.language.value import row_major
from runtime.language.views import View


@dataclass(frozen=True)
class Scalar:
    """A type of Triton, as far as index values read it."""

    name: str

    def is_ptr(self) -> bool:
        return self.name == "pointer"


POINTER, BOOL = Scalar("pointer"), Scalar("int1")
BASE = 1 << 20


def affine(shape: tuple[int, ...], *steps: int) -> IndexValue:
    start = Affine(BASE, tuple(4 * each for each in steps))
    return IndexValue(POINTER, shape, affine=start)


def addresses(*elements: Any) -> IndexValue:
    array = np.asarray(elements[0] if len(elements) == 1 else elements)
    return IndexValue(POINTER, array.shape, array=BASE + 4 * array.astype(np.int64))


def box(shape: tuple[int, ...], *spans: tuple[int, int]) -> IndexValue:
    return IndexValue(BOOL, shape, box=tuple(spans))


def moved(plan: BlockTransfer) -> dict[int, int]:
    """The address that each element of the block, by its row-major position, comes from."""
    storage = np.full(int(np.prod(plan.stored)), -1, np.int64)

    def positions(view: View) -> np.ndarray:
        grid = np.full(view.shape, view.offset)
        for axis, (length, step) in enumerate(zip(view.shape, view.strides, strict=True)):
            lengths = [length if each == axis else 1 for each in range(len(view.shape))]
            grid = grid + (np.arange(length) * step).reshape(lengths)
        return grid

    def elements(address: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
        return address // 4 + positions(View(shape, strides))

    for view, pointer, strides in plan.boxes:
        storage[positions(view)] = elements(pointer.address, view.shape, strides)
    for rows in plan.rows:
        for index, number in enumerate(rows.numbers):
            row = View(
                rows.view.shape[1:],
                rows.view.strides[1:],
                rows.view.offset + index * rows.view.strides[0],
            )
            at = rows.pointer.address + 4 * number
            storage[positions(row)] = elements(at, rows.shape, rows.strides)
    block = storage[positions(plan.view)].reshape(-1)
    return {at: 4 * int(each) for at, each in enumerate(block) if each >= 0}


def expected(pointers: IndexValue, mask: np.ndarray | None = None) -> dict[int, int]:
    flat = pointers.array.reshape(-1)
    used = np.ones(flat.size, bool) if mask is None else mask.reshape(-1)
    return {at: int(flat[at]) for at in np.flatnonzero(used)}


@pytest.mark.parametrize(
    ("pointers", "mask"),
    [
        (affine((64,), 1), None),
        (affine((8, 16), 100, 1), None),
        (affine((8, 16), 1, 100), None),
        (affine((64,), 1), box((64,), (0, 24))),
        (affine((8, 16), 100, 1), box((8, 16), (2, 7), (0, 9))),
        (affine((4, 8, 16), 5000, 100, 1), box((4, 8, 16), (0, 4), (1, 8), (0, 16))),
    ],
)
def test_an_affine_block_with_a_box_is_one_descriptor(
    pointers: IndexValue, mask: IndexValue | None
) -> None:
    plan = transfer(pointers, mask, float32)
    assert (len(plan.boxes), plan.rows) == (1, ())
    assert moved(plan) == expected(pointers, None if mask is None else mask.array)


def test_a_transposed_block_is_stored_in_the_order_of_memory() -> None:
    plan = transfer(affine((8, 16), 1, 100), None, float32)
    ((view, _, strides),) = plan.boxes
    assert (view.shape, strides) == ((16, 8), (100, 1))


def test_what_a_box_leaves_out_is_a_disjoint_rest() -> None:
    plan = transfer(affine((8, 16), 100, 1), box((8, 16), (2, 7), (0, 9)), float32)
    assert plan.rest is not None
    left = [int(np.prod(each.shape)) for each in plan.rest]
    assert sum(left) == 8 * 16 - 5 * 9


def test_repeated_addresses_are_loaded_once() -> None:
    plan = transfer(affine((8, 16), 0, 1), None, float32)
    ((view, _, _),) = plan.boxes
    assert (view.shape, plan.view.shape) == ((16, 1), (1, 16))


def test_irregular_rows_are_one_gather() -> None:
    starts = np.array([7, 3, 40, 12, 90, 11])
    pointers = addresses(starts[:, None] * 16 + np.arange(16))
    plan = transfer(pointers, None, float32)
    assert (plan.boxes, len(plan.rows), plan.counts.rows) == ((), 1, 6)
    assert moved(plan) == expected(pointers)


def test_indices_that_wrap_round_are_two_descriptors() -> None:
    pointers = addresses((np.arange(32) + 20) % 40)
    plan = transfer(pointers, None, float32)
    assert (len(plan.boxes), plan.rows) == (2, ())
    assert moved(plan) == expected(pointers)


def test_addresses_without_a_pattern_are_single_elements() -> None:
    pointers = addresses(np.random.default_rng(0).permutation(64))
    plan = transfer(pointers, None, float32)
    assert plan.counts.elements > 50
    assert moved(plan) == expected(pointers)


def test_a_triangular_mask_is_a_run_for_each_row() -> None:
    pointers = affine((8, 8), 8, 1)
    mask = IndexValue(BOOL, (8, 8), array=np.tril(np.ones((8, 8), bool)))
    plan = transfer(pointers, mask, float32)
    assert plan.rest is None
    assert moved(plan) == expected(pointers, mask.array)


def test_a_store_of_rows_is_a_box_for_each() -> None:
    starts = np.array([7, 3, 40, 12, 90, 11])
    pointers = addresses(starts[:, None] * 16 + np.arange(16))
    plan = transfer(pointers, None, float32)
    parts = stored_parts(plan, View((6, 16), row_major((6, 16))))
    assert [pointer.address for _, pointer, _ in parts] == (BASE + 64 * starts).tolist()
    assert [view.offset for view, _, _ in parts] == [16 * row for row in range(6)]


def test_an_address_between_elements_is_refused() -> None:
    pointers = IndexValue(POINTER, (4,), affine=Affine(BASE + 2, (4,)))
    with pytest.raises(ValueError, match="no multiple of the 4 bytes of f32"):
        transfer(pointers, None, float32)


def test_a_mask_without_elements_is_used_nowhere() -> None:
    assert not any_used(box((8, 8), (0, 0), (0, 8)))
    assert any_used(box((8, 8), (0, 1), (0, 8)))
    assert any_used(None)
