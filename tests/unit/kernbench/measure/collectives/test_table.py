"""The table of `perf`: the columns of nccl-tests, a bound, a footer; and the same rows as JSON."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kernbench.benches.collective_perf.bound import TimeBound
from kernbench.benches.collective_perf.collective import COLLECTIVES, PerfCase
from kernbench.measure.collectives.table import (
    PerfTableRow,
    algorithm_text,
    make_row,
    parameter_lines,
    table_lines,
    write_json,
)
from runtime.core.bench_registry import PerfRow
from tests.support.perf_parameters import PARAMETERS as SMALL

US = 1_000_000
BOUND = TimeBound(launch_ps=100_000, path_ps=200_000, links_ps=1_500_000)


def case(name: str = "all_gather", count: int = 256, op: str = "none", root: int = -1) -> PerfCase:
    return PerfCase(
        collective=COLLECTIVES[name], ranks=4, count=count, dtype_name="float", op=op, root=root
    )


def lines(*rows: PerfTableRow) -> list[str]:
    return list(table_lines(rows))


def row(of: PerfCase, time_ps: float = 2 * US, wrong: int | None = 0) -> PerfTableRow:
    return PerfTableRow(case=of, algorithm="ring", time_ps=time_ps, wrong=wrong, bound=BOUND)


def test_the_columns_are_those_of_nccl_tests_and_a_bound():
    form = ["time", "algbw", "busbw", "#wrong"]
    headings = lines(row(case()))[:3]
    assert headings[0].split() == ["#", "out-of-place", "in-place"]
    assert headings[1].split() == [
        "#",
        "size",
        "count",
        "type",
        "redop",
        "root",
        *form,
        *form,
        "bound",
    ]
    units = ["(us)", "(GB/s)", "(GB/s)"]
    assert headings[2].split() == ["#", "(B)", "(elements)", *units, *units, "(us)"]


def test_every_cell_ends_under_its_heading():
    headings, cells = (lines(row(case()))[index] for index in (1, 3))
    ends = [
        index
        for index in range(1, len(headings) + 1)
        if f"{headings} "[index - 1 : index + 1].strip() == headings[index - 1]
    ]
    assert [cells[:end].split()[-1] for end in ends if cells[:end].strip()] == cells.split()


def test_a_collective_with_two_tensors_is_out_of_place_and_one_with_one_in_place():
    # 4 ranks x 256 elements x 4 B in 2 us: 2.048 GB/s, 3/4 of it on the bus.
    out_of_place, *_ = (line.split() for line in lines(row(case()))[3:])
    nothing = ["N/A"] * 4
    assert out_of_place == [
        "4096",
        "256",
        "float",
        "none",
        "-1",
        "2.00",
        "2.05",
        "1.54",
        "0",
        *nothing,
        "1.50",
    ]
    in_place, *_ = (
        line.split() for line in lines(row(case("reduce", 1024, "sum", 2), wrong=3))[3:]
    )
    assert in_place == [
        "4096",
        "1024",
        "float",
        "sum",
        "2",
        *nothing,
        "2.00",
        "2.05",
        "2.05",
        "3",
        "1.50",
    ]


def test_a_footnote_explains_a_form_without_numbers():
    assert (
        "# in-place N/A: all_gather of torch.distributed has an input and an output of its own"
        in lines(row(case()))
    )
    assert "# out-of-place N/A: reduce of torch.distributed works in place" in lines(
        row(case("reduce", root=0))
    )


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (1.234, "1.23"),
        (99.994, "99.99"),
        (123.456, "123.5"),
        (9999.94, "9999.9"),
        (12_345.6, "12346"),
    ],
)
def test_times_have_as_many_decimals_as_in_nccl_tests(time_us: float, text: str):
    assert lines(row(case(), time_us * US))[3].split()[5] == text


def test_the_footer_sums_what_is_wrong_and_averages_the_bus_bandwidth():
    def footer(*wrong: int | None) -> list[str]:
        return lines(*(row(case(), (index + 1) * US, each) for index, each in enumerate(wrong)))[
            -3:-1
        ]

    busbw_gbs = (4.096 * 3 / 4 + 4.096 / 2 * 3 / 4) / 2
    assert footer(0, 0) == [
        "# Out of bounds values : 0 OK",
        f"# Avg bus bandwidth    : {busbw_gbs:.6g}",
    ]
    assert footer(0, 7)[0] == "# Out of bounds values : 7 FAILED"
    assert footer(None, None)[0] == "# Out of bounds values : N/A, nothing was checked"


@pytest.mark.parametrize(("average", "time_us"), [(0, 4), (1, 3), (2, 1), (3, 4)])
def test_average_selects_the_time_among_those_of_the_ranks(average: int, time_us: int):
    rows = [
        PerfRow(4096, 256, "float", "none", each * US, 0, 0, wrong)
        for each, wrong in ((4, 1), (1, 0), (4, 2), (3, 0))
    ]
    bounds = [TimeBound(links_ps=time * US) for time in (5, 4, 2, 1)]
    made = make_row(case(), "ring", rows, average, bounds)
    assert (made.time_ps, made.wrong) == (time_us * US, 3)
    assert made.bound.time_ps == (5, 3, 1, 5)[average] * US


def test_a_row_is_unchecked_if_one_rank_has_not_checked_it():
    rows = [PerfRow(4096, 256, "float", "none", US, 0, 0, wrong) for wrong in (0, None)]
    assert make_row(case(), "ring", rows, 1, [BOUND] * 2).wrong is None


PARAMETERS = replace(SMALL, iters=5, check=3, cubes="12,13")


def test_the_lines_above_the_table_have_the_parameters():
    first, second, _ = parameter_lines(PARAMETERS, 1, 4, "ring", "chosen")
    assert first == (
        "# all_reduce ranks 4 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 1 iters: 5 "
        "validation: 3 average: mean"
    )
    assert second == "# algorithm ring, a buffer on up to 8 PEs of cubes 12, 13 (chosen)"


@pytest.mark.parametrize(
    ("requested", "algorithm_of", "text"),
    [
        ("ring", {8: "ring", 64: "ring"}, "ring"),
        ("auto", {8: "ring", 64: "ring"}, "auto: ring"),
        (
            "auto",
            {64: "tree", 8: "tree", 128: "ring", 512: "ring"},
            "auto: tree up to 64 B, then ring",
        ),
        (
            "auto",
            {8: "tree", 64: "ring", 512: "tree"},
            "auto: tree up to 8 B, then ring up to 64 B, then tree",
        ),
        ("tree", {8: "point_to_point"}, "tree: point_to_point"),
    ],
)
def test_the_algorithms_of_the_sizes_are_shown_if_they_differ_from_the_request(
    requested: str, algorithm_of: dict[int, str], text: str
):
    assert algorithm_text(requested, algorithm_of) == text


def test_the_rows_are_written_with_all_digits(tmp_path: Path):
    write_json(tmp_path / "rows.json", PARAMETERS, [row(case(), 1_234_567)], {"digest": "abc"})
    written = json.loads((tmp_path / "rows.json").read_text())
    assert (written["digest"], written["request"]["check"]) == ("abc", 3)
    [of_row] = written["rows"]
    assert of_row["out_of_place"] == {
        "time_us": 1.234567,
        "algbw_gbs": pytest.approx(4096e3 / 1_234_567),
        "busbw_gbs": pytest.approx(4096e3 / 1_234_567 * 3 / 4),
        "wrong": 0,
    }
    assert of_row["in_place"] is None
    assert of_row["algorithm"] == "ring"
    assert [of_row[f"bound_{part}us"] for part in ("", "launch_", "path_", "links_")] == [
        1.5,
        0.1,
        0.2,
        1.5,
    ]


def test_the_heading_states_that_sizes_are_rounded_down():
    parameters = replace(SMALL, collective="all_reduce", dtype="float", step_factor=2)
    for least, stated in ((3, "3 B has no row"), (6, "6 B runs with 4 B")):
        odd = replace(parameters, min_bytes=least, max_bytes=24)
        heading = list(parameter_lines(odd, 1, 4, "ring", "nearest"))
        whole = "# sizes are rounded down to whole elements of every rank: "
        assert [line for line in heading if line.startswith(whole)] == [whole + stated]
    even = replace(parameters, min_bytes=4, max_bytes=24)
    assert len(list(parameter_lines(even, 1, 4, "ring", "nearest"))) == 3
