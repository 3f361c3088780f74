"""Rows that a file keeps, and which of them count at the next start."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from kernbench.points import rows_file
from kernbench.points.rows_file import RowsFile
from kernbench.points.task import PointFault
from runtime.core.errors import UsageError
from tests.support.points import NumberPoint, NumberRow, squared

POINTS = [NumberPoint(number) for number in range(4)]


class _FloatRow(Struct, frozen=True):
    value: float


def _opened(
    path: Path, resume: bool | None = None, configuration: str = "c" * 64, points=POINTS
) -> RowsFile:
    return RowsFile(path, NumberRow, points, configuration, resume=resume)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "numbers.rows.jsonl"


def _written(path: Path, points=POINTS[:2]) -> None:
    with _opened(path) as file:
        for point in points:
            file.add(point, squared(point))


def test_a_line_is_there_before_the_next_point_is_measured(path: Path):
    with _opened(path) as file:
        file.add(POINTS[2], squared(POINTS[2]))
        [line] = path.read_text().splitlines()
        content = json.loads(line)
        assert content["point"] == "number 2"
        assert content["configuration"] == "c" * 64
        assert len(content["hash"]) == len(content["code"]) == 64
        assert content["row"] == {"square": 4, "third": 2 / 3}


def test_an_unfinished_file_goes_on(path: Path):
    _written(path)
    with _opened(path) as file:
        assert file.rows == {point: squared(point) for point in POINTS[:2]}
        assert file.note == f"2 of 4 rows are in {path} already"


def test_a_finished_file_starts_over_unless_it_is_to_be_resumed(path: Path):
    _written(path, POINTS)
    with _opened(path, resume=True) as file:
        assert len(file.rows) == 4
    with _opened(path) as file:
        assert file.rows == {}
    assert path.read_bytes() == b""


def test_no_resume_starts_over(path: Path):
    _written(path)
    with _opened(path, resume=False) as file:
        assert file.rows == {}


def test_a_line_that_was_cut_by_a_kill_does_not_count(path: Path):
    _written(path)
    content = path.read_bytes()
    for length in range(len(content) - 1, content.index(b"\n"), -37):
        path.write_bytes(content[:length])
        with _opened(path) as file:
            assert list(file.rows) == [POINTS[0]]
            file.add(POINTS[1], squared(POINTS[1]))
            file.finish()
        assert path.read_bytes() == content


def test_the_lines_are_in_the_order_of_the_points_at_the_end(path: Path):
    _written(path, [POINTS[3], POINTS[1]])
    with _opened(path) as file:
        file.add(POINTS[2], PointFault("number 2", "too hot"))
        file.add(POINTS[0], squared(POINTS[0]))
        file.finish()
    names = [json.loads(line)["point"] for line in path.read_text().splitlines()]
    assert names == [f"number {number}" for number in range(4)]


def test_a_fault_is_measured_again(path: Path):
    with _opened(path) as file:
        file.add(POINTS[0], squared(POINTS[0]))
        file.add(POINTS[1], PointFault("number 1", "its worker has died"))
    with _opened(path, resume=True) as file:
        assert list(file.rows) == [POINTS[0]]


def test_points_may_be_added_to_a_finished_file(path: Path):
    _written(path, POINTS)
    with _opened(path, resume=True, points=[*POINTS, NumberPoint(9)]) as file:
        assert list(file.rows) == POINTS


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"configuration": "d" * 64}, "of another configuration, of hash cccccccccccc and not ddd"),
        ({"points": POINTS[1:]}, "none of these points"),
    ],
)
def test_rows_of_others_are_refused_by_resume_and_put_aside_without(
    change: dict, problem: str, path: Path
):
    _written(path)
    content = path.read_bytes()
    with pytest.raises(UsageError, match=f"^--resume: .*{problem}") as error:
        _opened(path, resume=True, **change)
    assert "\n" not in str(error.value)
    assert path.read_bytes() == content
    with _opened(path, **change) as file:
        assert file.rows == {}
        assert "they are in numbers.rows.jsonl.old now" in file.note
    assert path.with_name("numbers.rows.jsonl.old").read_bytes() == content


def test_rows_of_other_code_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch):
    _written(path)
    monkeypatch.setattr(rows_file, "own_code", lambda: "e" * 64)
    with pytest.raises(
        UsageError, match=r"of other code of kernbench, of hash .* and not eeeeeeee"
    ):
        _opened(path, resume=True)


def test_a_damaged_line_is_refused_with_its_number(path: Path):
    _written(path)
    first, second = path.read_text().splitlines()
    path.write_text(f"{first}\n{second[:-9]}\n")
    with pytest.raises(UsageError, match=r"line 2 of .* is damaged"):
        _opened(path, resume=True)


def test_a_second_process_is_refused(path: Path):
    with _opened(path), pytest.raises(UsageError, match="is in use: a run of process"):
        _opened(path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        _opened(tmp_path / "missing" / "numbers.rows.jsonl")


@given(value=st.floats())
def test_every_number_is_read_as_it_was_written_or_measured_again(
    value: float, tmp_path_factory: pytest.TempPathFactory
):
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    points = POINTS[:2]
    with RowsFile(path, _FloatRow, points, "c") as file:
        file.add(points[0], _FloatRow(value))
    with RowsFile(path, _FloatRow, points, "c") as file:
        for row in file.rows.values():
            assert row.value.hex() == value.hex()
        assert len(file.rows) == (value - value == 0)
