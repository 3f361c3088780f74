"""Results and times that are faults, and the sentences for them."""

import math

import pytest

from kernbench.studies.study_results import below_bound, sip_count, wrong_by, wrong_count


@pytest.mark.parametrize("count", [None, 0])
def test_a_result_without_wrong_elements_or_without_data_is_no_fault(count: int | None):
    assert [*wrong_count(count)] == []


def test_wrong_elements_are_counted():
    assert [*wrong_count(1024)] == ["1,024 elements are wrong"]


@pytest.mark.parametrize("error", [None, 0.0, 1e-3])
def test_an_error_up_to_the_tolerance_is_no_fault(error: float | None):
    assert [*wrong_by(error, 1e-3)] == []


def test_an_error_above_the_tolerance_is_a_fault_and_so_is_a_nan():
    assert [*wrong_by(2e-3, 1e-3)] == ["wrong by 0.002, 0.001 are allowed"]
    assert [*wrong_by(math.nan, 1e-3, "one head")] == ["wrong by nan (one head), 0.001 are allowed"]


def test_a_time_below_its_bound_is_a_fault_and_its_bound_itself_is_none():
    assert [*below_bound(1000, 1000.0)] == []
    assert [*below_bound(1000, 1000.6)] == ["1,000 ps are less than the bound of 1,001 ps"]
    [named] = below_bound(999, 1000, "dispatch")
    assert named == "dispatch: 999 ps are less than the bound of 1,000 ps"


def test_one_sip_has_a_singular_and_every_other_number_a_plural():
    assert [sip_count(count) for count in (1, 2, 16)] == ["1 SIP", "2 SIPs", "16 SIPs"]
