"""Output of a sweep."""

from pathlib import Path

from kernbench.sweep.columns import Cell
from kernbench.sweep.figures_quantity import Quantity
from kernbench.sweep.report import best_and_worst, fault_lines, file_lines, heading, sweep_table
from tests.unit.kernbench.sweep.test_files import DESCRIPTION


def columns(count: int = 3, faults: dict[int, str] | None = None) -> dict[str, list[Cell]]:
    """The columns of `count` points; those in `faults` have no other cells."""
    found = faults or {}
    cells = range(count)
    return {
        "key": list(cells),
        "config_hash": [None if at in found else "c" * 64 for at in cells],
        "time_ns": [None if at in found else 1000.5 + at for at in cells],
        "digest": [None if at in found else f"{at:064}" for at in cells],
        "memory_stall_percent": [None if at in found else 12.3456 for at in cells],
        "algbw_gbs": [None if at in found else 3.0 - at for at in cells],
        "fault": [found.get(at) for at in cells],
    }


def quantity(found: dict[str, list[Cell]], name: str) -> Quantity:
    """The numbers of a column, of which more is better in a rate and less in a time."""
    numbers = tuple(each if isinstance(each, float) else None for each in found[name])
    is_time = name == "time_ns"
    return Quantity(name, "", numbers, is_time=is_time, more_is_better=not is_time)


def test_the_table_has_parameters_time_metric_shares_and_digest():
    assert list(sweep_table(columns(2, {1: "x"}), ["algbw_gbs"]).lines()) == [
        "#                            memory",
        "                              stall",
        "  key    time_ns  algbw_gbs       %            digest",
        "    0  1,000.500      3.000    12.3  0000000000000000",
        "    1                                           fault",
    ]


def test_small_numbers_keep_their_digits():
    found = columns(2) | {"key": [0.00025, None], "algbw_gbs": [0.00012345678, 0.0]}
    lines = list(sweep_table(found, ["algbw_gbs"]).lines())[3:]
    assert [line.split()[:3] for line in lines] == [
        ["0.00025", "1,000.500", "0.0001235"],
        ["null", "1,001.500", "0.000"],
    ]


def test_a_long_table_has_its_first_and_last_rows():
    lines = list(sweep_table(columns(100), []).lines())
    keys = [line.split()[0] for line in lines[3:]]
    assert keys == [*map(str, range(30)), "…", *map(str, range(92, 100))]


def test_the_best_point_has_the_highest_rate_and_the_least_time():
    found = columns(4, {0: "x"}) | {"algbw_gbs": [None, 2.0, 1.0, 2.0]}
    # Of equal values the first point.
    assert list(best_and_worst(found, {"algbw_gbs": quantity(found, "algbw_gbs")})) == [
        "best            algbw_gbs 2.000 at key=1",
        "worst           algbw_gbs 1.000 at key=2",
    ]
    assert list(best_and_worst(found, {"time_ns": quantity(found, "time_ns")})) == [
        "best            time_ns 1,001.500 at key=1",
        "worst           time_ns 1,003.500 at key=3",
    ]


def test_each_fault_has_a_line_up_to_twenty():
    assert list(fault_lines(columns(3))) == []
    assert list(fault_lines(columns(3, {1: "x is wrong"}))) == [
        "1 FAULT of 3 points",
        "key=1: x is wrong",
    ]
    many = list(fault_lines(columns(30, dict.fromkeys(range(25), "y"))))
    assert (many[0], many[-1]) == ("25 FAULTS of 30 points", "and 5 more, in the column `fault`")
    assert len(many) == 22


def test_the_heading_has_the_program_and_its_number_of_points():
    assert heading(DESCRIPTION, 1200) == "# sweep ccl-allreduce fast: 1,200 points"


def test_files_are_listed():
    assert list(file_lines([Path("a/b"), Path("a/c")])) == [
        "files           a/b",
        "                a/c",
    ]
