"""A column as a figure shows it: unit, scale, and which of two numbers is better."""

from pathlib import Path

import pytest

from kernbench.sweep.figures_quantity import Quantity, key_label, metric_names, quantities, short
from kernbench.sweep.sweep_table import SweepTable
from runtime.core.errors import UsageError
from tests.support.sweep_csv import sweep

MORE = {
    "memory_stall_percent": lambda a: 10 * a,
    "algbw_gbs": lambda a: a / 2,
    "rate_tflops@4,8": lambda a: a,
    "row_time_ns@256": lambda a: 1500 * a,
    "bound_by": lambda _: "memory",
    "none": lambda _: "",
    "huge": lambda _: "1e999",
}


@pytest.fixture
def table(tmp_path: Path) -> SweepTable:
    return sweep(tmp_path, {"ucie.bw_gbs": [1, 2], "--size": [3]}, _time, more=_of_the_first)


def _time(first: int, _: int) -> float:
    return 2.5e6 * first


_of_the_first = {name: lambda a, _, each=each: each(a) for name, each in MORE.items()}


def quantity(table: SweepTable, metric: str) -> Quantity:
    (only,) = quantities(table, metric)
    return only


@pytest.mark.parametrize(
    ("metric", "label", "numbers", "more_is_better"),
    [
        ("time_ns", "simulated time (ms)", (2.5, 5.0), False),
        ("memory_stall_percent", "memory stall (%)", (10, 20), False),
        ("+memory_stall_percent", "memory stall (%)", (10, 20), True),
        ("algbw_gbs", "algbw (GB/s)", (0.5, 1.0), True),
        ("-algbw_gbs", "algbw (GB/s)", (0.5, 1.0), False),
        ("rate_tflops@4,8", "rate@4,8 (TFLOPS)", (1, 2), True),
        ("row_time_ns@256", "row time@256 (us)", (1.5, 3.0), False),
        # A swept key is what a design spends, also if it is a rate.
        ("ucie.bw_gbs", "ucie.bw_gbs (GB/s)", (1, 2), False),
        ("--size", "--size", (3, 3), False),
        ("+--size", "--size", (3, 3), True),
    ],
)
def test_the_name_of_a_column_gives_unit_and_direction(
    table: SweepTable,
    metric: str,
    label: str,
    numbers: tuple[float, ...],
    more_is_better: bool,
):
    found = quantity(table, metric)
    assert (found.label, found.numbers) == (label, numbers)
    assert found.more_is_better is more_is_better


@pytest.mark.parametrize(
    ("metric", "problem"),
    [
        ("bound_by", "metric 'bound_by' is not a number: a point has 'memory'"),
        ("digest", "metric 'digest' is not a number: a point has '9e9'"),
        ("none", "metric 'none' has no number in any point"),
        ("huge", "metric 'huge' has a number that is too large"),
        ("algbw_gb", "metric 'algbw_gb' is no column of the sweep; did you mean 'algbw_gbs'?"),
        ("+algbw", "metric 'algbw' is no column of the sweep; did you mean 'algbw_gbs'?"),
        ("", "metric '' is no column of the sweep; known: "),
    ],
)
def test_what_is_no_number_is_refused(table: SweepTable, metric: str, problem: str):
    with pytest.raises(UsageError) as raised:
        quantities(table, metric)
    assert problem in str(raised.value)


def test_names_of_columns_may_have_commas():
    columns = ["time_ns", "rate@4,8", "--size"]
    assert metric_names("rate@4,8", columns) == ["rate@4,8"]
    assert metric_names("time_ns,rate@4,8", columns) == ["time_ns", "rate@4,8"]
    assert metric_names("+rate@4,8,---size", columns) == ["+rate@4,8", "---size"]
    assert metric_names("a,b", columns) == ["a", "b"]


def test_a_change_is_a_factor_except_of_percentages_and_from_zero(table: SweepTable):
    assert quantity(table, "time_ns").change(4.2, 2.0) == "2.1x faster"
    assert quantity(table, "time_ns").change(2.0, 2.1) == "1.05x slower"
    assert quantity(table, "row_time_ns@256").change(1.0, 250.0) == "row time@256 250x slower"
    assert quantity(table, "algbw_gbs").change(1.0, 3.0) == "algbw 3x higher"
    assert quantity(table, "algbw_gbs").change(0.0, 3.0) == "algbw from 0 to 3 GB/s"
    stall = quantity(table, "memory_stall_percent")
    assert stall.change(35.0, 12.0) == "memory stall from 35 to 12 %"


def test_the_best_and_the_worst_row_follow_the_direction(table: SweepTable):
    for metric, rows in (("time_ns", (0, 1)), ("algbw_gbs", (1, 0))):
        found = quantity(table, metric)
        assert (found.best([0, 1]), found.worst([0, 1])) == rows


def test_numbers_have_three_digits_and_no_exponent():
    shown = [short(number) for number in (0, 0.01234, 9.876, 123.4, 99_999.4, -1234.5)]
    assert shown == ["0", "0.0123", "9.88", "123", "99,999", "-1,234"]


def test_the_unit_of_a_key_is_at_the_end_of_its_name():
    keys = ["ucie.bw_gbs", "pe.cpu.overhead_ns", "pe.dma.channels", "hbm.slice_gib"]
    assert [key_label(key) for key in keys] == [
        "ucie.bw_gbs (GB/s)",
        "pe.cpu.overhead_ns (ns)",
        "pe.dma.channels",
        "hbm.slice_gib (GiB)",
    ]
