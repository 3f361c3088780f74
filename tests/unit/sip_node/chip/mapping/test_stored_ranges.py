"""The ranges of one launch, against a model that keeps the writer of every byte."""

from itertools import product
from operator import mul
from weakref import ReferenceType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.coordinates import PeCoordinates
from runtime.core.trace import Operand
from sip_node.chip.mapping.stored_ranges import (
    PAGE_BYTES,
    PageRanges,
    ReleasedRanges,
    StoreConflict,
    StoredRanges,
)
from sip_node.chip.store_order import KernelOrder, OrderedStore, StoreOrders


class LastKernel(KernelOrder):
    """A kernel that is behind all others."""

    def is_behind(self, kernel: ReferenceType[KernelOrder], end: int) -> bool:
        return True


PES = [PeCoordinates(0, 0, pe) for pe in range(3)]
KERNELS = KernelOrder(StoreOrders()), KernelOrder(StoreOrders()), LastKernel(StoreOrders())
FIRST, SECOND, LAST = map(OrderedStore, [each.own for each in KERNELS], PES, [0, 0, 0])
"""Stores of kernels: nothing orders the first two, and the last one is behind both."""


def packed(address: int, nbytes: int) -> Operand:
    return Operand(address, (nbytes,), "i8")


def rows(address: int, count: int, width: int, pitch: int) -> Operand:
    return Operand(address, (count, width), "i8", (pitch, 1))


addresses = st.integers(0, 40) | st.integers(PAGE_BYTES - 20, PAGE_BYTES + 20)
blocks = (
    st.builds(packed, addresses, st.integers(1, 12))
    | st.builds(
        lambda address, count, width, gap: rows(address, count, width, width + gap),
        addresses,
        st.integers(1, 4),
        st.integers(1, 4),
        st.integers(0, 5),
    )
    | st.builds(
        lambda address, gap: Operand(address, (2, 2, 3), "i8", (20 + gap, 4, 1)),
        addresses,
        st.integers(0, 5),
    )
)
stores = st.lists(st.tuples(blocks, st.sampled_from([FIRST, SECOND, LAST])), max_size=20)


def bytes_of(block: Operand) -> list[int]:
    if not block.strides:
        return list(range(block.address, block.address + block.shape[0]))
    places = product(*map(range, block.shape))
    return [block.address + sum(map(mul, place, block.strides)) for place in places]


@given(stores)
def test_a_byte_has_the_writer_of_its_last_store_and_another_is_behind_that(
    stores: list[tuple[Operand, OrderedStore]],
) -> None:
    ranges, writers = StoredRanges(), dict[int, PeCoordinates | str]()
    for block, store in stores:
        writer = store.writer
        other = [each for each in bytes_of(block) if writers.get(each, writer) != writer]
        conflict = ranges.add(block, store)
        if store is LAST:
            other = []
        if not other:
            assert conflict is None
            writers |= dict.fromkeys(bytes_of(block), writer)
            continue
        assert conflict is not None
        assert conflict.writer != writer
        assert set(range(conflict.start, conflict.stop)) <= set(other)
        assert conflict.start == other[0]
        return


def test_the_conflict_is_the_common_part_of_both_stores() -> None:
    ranges = StoredRanges()
    assert ranges.add(packed(100, 50), FIRST) is None
    assert ranges.add(packed(140, 30), SECOND) == StoreConflict(140, 150, PES[0])


def test_a_pe_stores_again_to_its_own_bytes_and_beside_those_of_another() -> None:
    ranges = StoredRanges()
    assert [ranges.add(packed(0, 10), FIRST) for _ in range(2)] == [None, None]
    assert ranges.add(packed(10, 10), SECOND) is None
    assert ranges.add(packed(20, 10), FIRST) is None


def test_columns_of_one_matrix_that_pes_share_do_not_overlap() -> None:
    ranges = StoredRanges()
    assert ranges.add(rows(0, 4, 8, 16), FIRST) is None
    assert ranges.add(rows(8, 4, 8, 16), SECOND) is None
    assert ranges.add(rows(7, 4, 2, 16), SECOND) == StoreConflict(7, 8, PES[0])


def test_blocks_behind_each_other_are_one_range_of_a_page() -> None:
    page = PageRanges()
    for start in range(0, 1000, 10):
        page.add(start, start + 10, 0)
    assert page.starts.size == 1
    found = [page.conflict(start, start + 1, 1) for start in (0, 999, 1000)]
    assert found == [0, 0, -1]
    for start in (1020, 1010):
        page.add(start, start + 10, 0)
    assert page.starts.size == 2


def test_a_conflict_across_pages_is_one() -> None:
    ranges = StoredRanges()
    assert ranges.add(packed(100, 2 * PAGE_BYTES), FIRST) is None
    assert ranges.add(packed(100 + 2 * PAGE_BYTES, 50), SECOND) is None
    assert ranges.add(packed(PAGE_BYTES - 7, 3 * PAGE_BYTES), SECOND) == StoreConflict(
        PAGE_BYTES - 7, 100 + 2 * PAGE_BYTES, PES[0]
    )


@pytest.mark.parametrize("shift", range(-3, 4))
def test_a_conflict_at_the_end_of_a_page_ends_there_unless_it_goes_on(shift: int) -> None:
    ranges, end = StoredRanges(), PAGE_BYTES + shift
    assert ranges.add(packed(0, end), FIRST) is None
    assert ranges.add(packed(end, 10), SECOND) is None
    conflict = ranges.add(packed(end - 5, 10), SECOND)
    assert conflict == StoreConflict(end - 5, end, PES[0])


def test_a_conflict_ends_at_a_page_behind_which_the_first_bytes_are_free() -> None:
    ranges = StoredRanges()
    assert ranges.add(packed(PAGE_BYTES - 10, 10), FIRST) is None
    assert ranges.add(packed(PAGE_BYTES + 5, 10), FIRST) is None
    conflict = ranges.add(packed(PAGE_BYTES - 5, 20), SECOND)
    assert conflict == StoreConflict(PAGE_BYTES - 5, PAGE_BYTES, PES[0])


def test_atomic_operations_are_no_conflict_and_a_store_is_behind_all_of_them():
    ranges = StoredRanges()
    assert ranges.add(packed(0, 8), FIRST, True) is None
    assert ranges.add(packed(4, 8), SECOND, True) is None
    # The bytes in common have both, and the others their own.
    assert ranges.add(packed(0, 4), FIRST) is None
    assert ranges.add(packed(8, 4), SECOND) is None
    assert ranges.add(packed(4, 4), FIRST) == StoreConflict(4, 8, PES[1])
    assert ranges.add(packed(4, 4), SECOND) == StoreConflict(4, 8, PES[0])
    assert ranges.add(packed(0, 12), LAST) is None


mixed = st.lists(
    st.tuples(blocks, st.sampled_from([FIRST, SECOND, LAST]), st.booleans()), max_size=20
)


@given(mixed)
def test_a_byte_has_the_last_atomic_operations_of_all_and_a_store_is_behind_them(
    operations: list[tuple[Operand, OrderedStore, bool]],
):
    ranges = StoredRanges()
    # By byte, whether its last use is atomic, and by whom; of stores the last one alone.
    uses: dict[int, tuple[bool, set[OrderedStore]]] = {}
    for block, store, is_atomic in operations:
        own, found = bytes_of(block), ranges.add(block, store, is_atomic)
        conflicts = [
            each
            for each in own
            if each in uses
            and not (is_atomic and uses[each][0])
            and store is not LAST
            and uses[each][1] - {store}
        ]
        if conflicts:
            assert found is not None
            assert found.start == conflicts[0]
            assert set(range(found.start, found.stop)) <= set(conflicts)
            assert found.writer in {each.writer for each in uses[found.start][1] - {store}}
            return
        assert found is None
        for each in own:
            earlier = uses[each][1] if is_atomic and each in uses and uses[each][0] else set()
            uses[each] = (is_atomic, earlier | {store})


def test_an_atomic_operation_is_behind_a_store_or_a_conflict_with_it():
    ranges = StoredRanges()
    assert ranges.add(rows(0, 3, 2, 4), FIRST) is None
    assert ranges.add(packed(3, 1), SECOND, True) is None
    assert ranges.add(packed(0, 12), SECOND, True) == StoreConflict(0, 2, PES[0])
    assert ranges.add(packed(0, 12), FIRST, True) is None
    assert ranges.add(packed(0, 12), LAST, True) is None


released = st.lists(st.tuples(blocks, st.booleans(), st.booleans()), max_size=12)


@given(released)
def test_an_acquisition_joins_all_releases_on_its_bytes_that_were_served_before(operations):
    orders, ranges = StoreOrders(), ReleasedRanges()
    # By byte, the operations that have released there, and by point those behind which it is.
    of_bytes: dict[int, set[int]] = {}
    for number, (block, releases, acquires) in enumerate(operations):
        point = orders.point(None, ()) if releases else None
        own = bytes_of(block)
        expected = set().union(*(of_bytes.get(each, set()) for each in own))
        joined = ranges.serve(orders, block, point, acquires)
        found, pending = set(), list(joined)
        while pending:
            each = pending.pop()
            found.add(each.number)
            pending += each.earlier
        if acquires:
            assert expected <= found
            assert {number for number in found if number in POINTS} == expected
        else:
            assert not joined
        if point is not None:
            POINTS.add(point.number)
            for each in own:
                of_bytes[each] = expected | {point.number}
        assert ranges.served == number + 1
    POINTS.clear()


POINTS: set[int] = set()
"""The numbers of the points that operations have released."""
