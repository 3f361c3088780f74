"""Writes the CSV of a sweep with chosen numbers, as a real sweep would."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path

from kernbench.sweep.sweep_table import SweepTable, read

Point = tuple[object, ...]


def write_sweep(
    path: Path,
    swept: Mapping[str, Sequence[object]],
    time_ns: Callable[..., float],
    *,
    is_zip: bool = False,
    faults: Mapping[Point, str] | None = None,
    more: Mapping[str, Callable[..., object]] | None = None,
) -> Path:
    """A row for each combination of values; `more` are further columns, by functions of a point."""
    points: Iterable[Point] = (
        zip(*swept.values(), strict=True) if is_zip else product(*swept.values())
    )
    columns = dict(more or {})
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*swept, "config_hash", "time_ns", "digest", *columns, "fault"])
        for point in points:
            fault = (faults or {}).get(point, "")
            cells = ["12e4", time_ns(*point), "9e9", *(each(*point) for each in columns.values())]
            writer.writerow([*point, *([""] * len(cells) if fault else cells), fault])
    return path


def sweep(path: Path, *arguments, **options) -> SweepTable:
    """The table of such a CSV."""
    return read(write_sweep(path / "sweep.csv", *arguments, **options))
