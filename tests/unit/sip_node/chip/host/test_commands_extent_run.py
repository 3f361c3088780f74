from hypothesis import given
from hypothesis import strategies as st

from runtime.core.requests import Extent
from sip_node.chip.host.commands import ExtentRun


def run_of(*spans: tuple[int, int], physical: int = 0) -> ExtentRun:
    return ExtentRun(tuple(Extent(start, stop - start, physical, "x") for start, stop in spans))


def test_an_address_is_in_the_extent_that_contains_it() -> None:
    run = run_of((10, 20), (30, 40))
    assert run.at(10) is run.at(19) is run.extents[0]
    assert run.at(20) is run.at(9) is run.at(40) is None
    assert run.below(29) is run.extents[0]
    assert run.below(9) is None


def test_a_run_that_replaces_all_of_another_one_stays_the_run_that_other_pes_share() -> None:
    run = run_of((10, 20), (20, 40))
    assert run.replacing([run_of((10, 20), (20, 40))]) is run
    assert run.replacing([]) is run


SPANS = st.lists(st.integers(0, 60), min_size=2, max_size=8, unique=True).map(
    lambda ends: list(zip(sorted(ends)[::2], sorted(ends)[1::2], strict=False))
)


@given(SPANS, SPANS)
def test_what_replaces_a_run_has_all_new_extents_and_the_old_ones_beside_them(
    old: list[tuple[int, int]], new: list[tuple[int, int]]
) -> None:
    merged = run_of(*new, physical=1).replacing([run_of(*old)])
    beside = [span for span in old if all(span[1] <= low or high <= span[0] for low, high in new)]
    found = [(extent.virtual, extent.end, extent.physical) for extent in merged.extents]
    assert found == sorted([*((*span, 1) for span in new), *((*span, 0) for span in beside)])
