"""The CSV of a sweep is read back: keys, columns, numbers, faults."""

from pathlib import Path

import pytest

from kernbench.sweep.sweep_table import read
from runtime.core.errors import UsageError
from tests.support.sweep_csv import sweep

HEADINGS = "ucie.bw_gbs,config_hash,time_ns,fault"


def written(path: Path, *lines: str) -> Path:
    file = path / "sweep.csv"
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def test_the_columns_left_of_the_hash_are_the_keys(tmp_path: Path):
    table = sweep(tmp_path, {"a.b": [2, 1], "--size": ["x", "y"]}, lambda a, _: 10.5 * a)
    assert table.keys == ("a.b", "--size")
    assert table.columns == ("config_hash", "time_ns", "digest", "fault")
    assert table.rows[0].keys == (2, "x")
    assert table.column("time_ns") == (21.0, 21.0, 10.5, 10.5)
    assert table.column("--size") == ("x", "y", "x", "y")


def test_a_hash_of_digits_stays_text_and_an_empty_cell_is_none(tmp_path: Path):
    table = sweep(tmp_path, {"a": [1, 2]}, lambda _: 1, faults={(2,): "out of memory"})
    assert table.column("config_hash") == ("12e4", None)
    assert table.column("time_ns") == (1, None)
    assert [row.fault for row in table.rows] == ["", "out of memory"]


@pytest.mark.parametrize("word", ["nan", "inf", "1_000", "0x10", "16K", "null"])
def test_only_plain_numbers_are_numbers(tmp_path: Path, word: str):
    table = read(written(tmp_path, HEADINGS, f"{word},1,2,"))
    assert table.rows[0].keys == (word,)


def test_values_are_ascending_if_all_are_numbers_else_in_the_order_of_the_rows(tmp_path: Path):
    swept = {"a": [256, 64.5, 128], "b": [8, "null", 2]}
    table = sweep(tmp_path, swept, lambda *_: 1)
    assert table.values("a") == (64.5, 128, 256)
    assert table.values("b") == (8, "null", 2)


def test_a_zip_sweep_is_no_grid(tmp_path: Path):
    swept = {"a": [1, 2], "b": [3, 4]}
    assert sweep(tmp_path, swept, lambda *_: 1).is_grid
    assert not sweep(tmp_path, swept, lambda *_: 1, is_zip=True).is_grid


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "is empty"),
        ([HEADINGS], "has headings and no points"),
        (["a,b", "1,2"], "is not the CSV of a sweep: it has no column config_hash"),
        (["a,config_hash", "1,2"], "it has no column fault"),
        (["config_hash,fault", "1,"], "it has no swept keys"),
        (["a,a,config_hash,fault", "1,2,3,"], "it has two columns a"),
        ([HEADINGS, "64,1,2"], "line 2 has 3 cells, its headings 4"),
        ([HEADINGS, "64,1,2,", "64,1,2,"], "lines 2 and 3 are the same point"),
        ([HEADINGS, '64,1,2,"a'], "is not a CSV file: unexpected end of data"),
    ],
)
def test_another_file_is_refused_in_one_line(tmp_path: Path, lines: list[str], problem: str):
    with pytest.raises(UsageError) as raised:
        read(written(tmp_path, *lines))
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match=r"none\.csv cannot be read: No such file"):
        read(tmp_path / "none.csv")
    file = tmp_path / "picture.csv"
    file.write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(UsageError, match=r"picture\.csv is not a CSV file"):
        read(file)


def test_the_columns_are_named_for_an_unknown_one(tmp_path: Path):
    table = sweep(tmp_path, {"a": [1]}, lambda _: 1)
    with pytest.raises(UsageError, match=r"metric 'time_ms' is no column.*did you mean 'time_ns'"):
        table.column("time_ms")
    with pytest.raises(UsageError, match="known: a, config_hash, digest, fault, time_ns"):
        table.column("zzz")
