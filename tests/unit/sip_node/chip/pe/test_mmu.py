from hypothesis import given
from hypothesis import strategies as st

from runtime.core.requests import Extent
from sip_node.chip.host.commands import ExtentRun
from sip_node.chip.pe.mmu import PeMmu


def mmu_with(*extents: tuple[int, int, int]) -> PeMmu:
    mmu = PeMmu()
    run = [
        Extent(virtual, nbytes, physical, f"t{virtual}") for virtual, nbytes, physical in extents
    ]
    mmu.map(ExtentRun(run))
    return mmu


def test_an_address_inside_an_extent_keeps_its_offset() -> None:
    assert mmu_with((100, 50, 7000)).translate(110, 20) == [(7010, 20)]


def test_a_range_over_two_extents_is_two_pieces() -> None:
    assert mmu_with((100, 50, 7000), (150, 50, 3000)).translate(140, 30) == [(7040, 10), (3000, 20)]


def test_a_range_with_a_hole_is_a_fault() -> None:
    mmu = mmu_with((100, 50, 7000), (151, 50, 3000))
    assert mmu.translate(140, 30) is None
    assert mmu.translate(99, 2) is None
    assert mmu.translate(190, 12) is None
    assert PeMmu().translate(0, 1) is None


def test_a_new_mapping_replaces_every_older_one_that_it_overlaps() -> None:
    mmu = mmu_with((100, 50, 7000), (200, 50, 8000), (300, 50, 9000))
    mmu.map(ExtentRun([Extent(140, 70, 1000, "new")]))
    assert mmu.translate(140, 70) == [(1000, 70)]
    assert mmu.translate(100, 1) is None
    assert mmu.translate(249, 1) is None
    assert mmu.translate(300, 50) == [(9000, 50)]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=8), st.integers(0, 80))
def test_the_last_mapping_of_an_address_holds(ranges: list[tuple[int, int]], address: int) -> None:
    mmu, model = PeMmu(), dict[int, int]()
    for index, (start, nbytes) in enumerate(ranges):
        mmu.map(ExtentRun([Extent(start, nbytes, 1000 * index, f"t{index}")]))
        replaced = {old // 1000 for at, old in model.items() if start <= at < start + nbytes}
        model = {at: old for at, old in model.items() if old // 1000 not in replaced}
        model |= {start + offset: 1000 * index + offset for offset in range(nbytes)}
    expected = None if address not in model else [(model[address], 1)]
    assert mmu.translate(address, 1) == expected


def test_a_fault_behind_a_tensor_names_the_distance() -> None:
    assert (
        mmu_with((0x1000, 64, 0)).nearest(0x1000 + 80)
        == "16 bytes past the end of tensor t4096 at 0x1000+64"
    )


def test_a_fault_inside_a_tensor_names_it() -> None:
    assert "starts inside tensor t4096" in mmu_with((0x1000, 64, 0)).nearest(0x1010)


def test_a_fault_below_every_tensor_names_none() -> None:
    assert (
        mmu_with((0x1000, 64, 0)).nearest(0xFFF)
        == PeMmu().nearest(0)
        == "no tensor is mapped below it"
    )


def test_a_byte_in_memory_is_that_of_the_tensor_at_the_virtual_address() -> None:
    mmu = PeMmu()
    dead, first, second = (500, 50, 7000, "dead"), (600, 20, 9000, "x"), (620, 50, 7010, "x")
    mmu.map(ExtentRun([Extent(*each) for each in (dead, first, second)]))
    assert mmu.tensor_at(630, 7025) == ("x", 35)
    assert mmu.tensor_at(500, 7025) == ("dead", 25)
