"""The columns of a sweep, from the rows of its points."""

from collections.abc import Sequence

import pytest

from kernbench.points.task import PointFault
from kernbench.sweep.columns import Cell, Result, heading, sweep_columns
from kernbench.sweep.points import SweepPoint
from kernbench.sweep.row import SweepRow
from kernbench.sweep.values import Value
from runtime.core.bench_registry import Column, Table, TableRow

BANDWIDTH = Column("algbw", "GB/s")


def table(*rows: tuple[tuple[str | int, ...], int, float], labels: str = "size") -> Table:
    """Rows of labels, time and bandwidth."""
    columns = tuple(Column(name) for name in labels.split())
    return Table(columns, (BANDWIDTH,), tuple(TableRow(a, b, (c,)) for a, b, c in rows))


def row(table: Table | None = None, time_ps: int = 1_500) -> SweepRow:
    return SweepRow("hash", time_ps, "digest", {"compute": 60.0, "memory stall": 40.0}, table)


def columns(*results: Result, values: Sequence[Value] = (1, 2, 3)) -> dict[str, list[Cell]]:
    points = [SweepPoint(("key",), (value,)) for value in values]
    return sweep_columns(dict(zip(points, results, strict=False)))


def test_a_point_has_its_values_results_and_shares():
    assert columns(row(), row(time_ps=2_000)) == {
        "key": [1, 2],
        "config_hash": ["hash", "hash"],
        "time_ns": [1.5, 2.0],
        "digest": ["digest", "digest"],
        "compute_percent": [60.0, 60.0],
        "memory_stall_percent": [40.0, 40.0],
        "fault": [None, None],
    }


@pytest.mark.parametrize("fault", [SweepRow(fault="x is wrong"), PointFault("key=2", "x is wrong")])
def test_a_fault_empties_the_other_cells(fault: Result):
    made = columns(fault, row())
    assert list(made)[-1] == "fault"
    assert made["fault"] == ["x is wrong", None]
    assert made["key"] == [1, 2]
    for name in ("config_hash", "time_ns", "digest", "compute_percent"):
        assert made[name][0] is None
        assert made[name][1] is not None


def test_a_table_of_one_row_has_columns_with_units():
    made = columns(row(table(((64,), 1_000, 0.5))), row(table(((128,), 2_000, 0.75))))
    assert made["size"] == [64, 128]
    assert made["row_time_ns"] == [1.0, 2.0]
    assert made["algbw_gbs"] == [0.5, 0.75]


def test_several_rows_differ_in_the_first_labels_that_suffice():
    both = table((("ring", 64), 1_000, 0.5), (("ring", 128), 2_000, 0.6), labels="form size")
    made = columns(row(both), row(table((("tree", 64), 3_000, 0.7), labels="form size")))
    # The form is the same in all rows of each point.
    assert made["form"] == ["ring", "tree"]
    assert made["algbw_gbs@64"] == [0.5, 0.7]
    assert made["algbw_gbs@128"] == [0.6, None]
    assert made["row_time_ns@128"] == [2.0, None]
    assert "size" not in made


def test_labels_are_joined_where_one_does_not_suffice():
    rows = [((form, size), 1_000, 0.5) for form in ("ring", "tree") for size in (1, 2)]
    made = columns(row(table(*rows, labels="form size")))
    assert [name for name in made if name.startswith("algbw")] == [
        "algbw_gbs@ring,1",
        "algbw_gbs@ring,2",
        "algbw_gbs@tree,1",
        "algbw_gbs@tree,2",
    ]


def test_rows_with_equal_labels_have_numbers():
    made = columns(row(table((("a",), 1_000, 0.5), (("a",), 2_000, 0.6))))
    assert (made["algbw_gbs@1"], made["algbw_gbs@2"]) == ([0.5], [0.6])


def test_a_heading_that_is_the_name_of_a_parameter_gets_another_one():
    point = SweepPoint(("size",), (7,))
    made = sweep_columns({point: row(table(((64,), 1_000, 0.5)))})
    assert (made["size"], made["row_size"]) == ([7], [64])


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ((1, 2.5), [1.0, 2.5]),
        ((1, "auto"), ["1", "auto"]),
        ((True, "x"), ["true", "x"]),
        ((None, 2), [None, 2]),
    ],
)
def test_a_column_has_one_type(values: Sequence[Value], cells: list[Cell]):
    made = columns(row(), row(), values=values)["key"]
    assert made == cells
    assert [type(cell) for cell in made] == [type(cell) for cell in cells]


@pytest.mark.parametrize(
    ("column", "name"),
    [
        (Column("algbw", "GB/s"), "algbw_gbs"),
        (Column("of bound", "%"), "of_bound_percent"),
        (Column("rate", "TFLOP/s"), "rate_tflops"),
        (Column("PEs"), "pes"),
    ],
)
def test_the_name_of_a_column_ends_with_its_unit(column: Column, name: str):
    assert heading(column) == name
