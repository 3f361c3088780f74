"""The directory of a sweep: its description, rows, table as CSV and Parquet, and figure.

`sweep.json` is written before the first point, the table after the last one. The figure is drawn
from the CSV alone, so it can be drawn again without a simulation.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from coordinator.report.files import next_numbered
from coordinator.report.run_lock import RunLock
from kernbench.studies import csv_file, results_file
from kernbench.sweep.columns import DIGEST, FAULT, HASH, Cell
from kernbench.sweep.parameters import Parameter
from kernbench.sweep.values import plain
from runtime.core.errors import UsageError

REQUEST, ROWS = "sweep.json", "sweep.rows.jsonl"
CSV, PARQUET, FIGURE = "sweep.csv", "sweep.parquet", "sweep.png"
_SWEEPS = "sweeps"
_VERSION = 1


class SweepDescription(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of `sweep.json`: the options of the sweep.

    `configuration` is the hash of what all points have in common.
    """

    version: int = _VERSION
    program: str
    arguments: tuple[str, ...]
    swept: tuple[Parameter, ...]
    fixed: tuple[Parameter, ...]
    zip: bool
    topology: str
    ccl: str
    data: bool
    metric: str
    plot: str
    configuration: str


@contextmanager
def sweep_directory(out: Path | None, name: str) -> Generator[Path]:
    """The directory `out`, by default the next `sweeps/NNNN-name`, created and locked.

    Raises `UsageError` if it cannot be written, or if another sweep writes to it.
    """
    directory = out or Path(_SWEEPS)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if out is None:
            directory = next_numbered(directory, name)
        lock = _locked(directory)
    except OSError as error:
        raise UsageError(f"--out: cannot write to {directory}: {error.strerror}") from error
    try:
        yield directory
    finally:
        lock.release()


def _locked(directory: Path) -> RunLock:
    try:
        return RunLock(directory)
    except UsageError as error:
        raise UsageError(f"--out: {error}; give this sweep another directory") from error


def begin(directory: Path, description: SweepDescription) -> None:
    """Write the description, and remove the table and the figure of an earlier sweep."""
    for name in (CSV, PARQUET, FIGURE):
        # If this sweep is killed, those must not be taken for its own.
        with suppress(FileNotFoundError):
            (directory / name).unlink()
    results_file.write(directory / REQUEST, description)


def read_description(directory: Path) -> SweepDescription | None:
    """The description of the sweep in `directory`, None without; `UsageError` for a wrong one."""
    path = directory / REQUEST
    return results_file.read(path, SweepDescription, _VERSION) if path.exists() else None


def require_same_sweep(directory: Path, description: SweepDescription) -> None:
    """Raise `UsageError` if the directory has the results of another sweep.

    What is shown of a sweep, metric and plot, makes no other one of it.
    """
    found = read_description(directory)
    if found is None:
        return
    shown = {"metric": description.metric, "plot": description.plot}
    if msgspec.structs.replace(found, **shown) != description:
        raise UsageError(
            f"--out: {directory} has another sweep, of {found.program}: --resume keeps its rows of "
            "the same points, --no-resume replaces it"
        )


def write_table(directory: Path, columns: Mapping[str, Sequence[Cell]]) -> list[Path]:
    """Write the CSV and the Parquet file; raises `UsageError` if that is not possible."""
    lines = zip(*([_csv_cell(cell) for cell in cells] for cells in columns.values()), strict=True)
    return [
        csv_file.write(directory / CSV, columns, lines),
        _write_parquet(directory / PARQUET, columns),
    ]


def _csv_cell(cell: Cell) -> object:
    return "" if cell is None else plain(cell)


def _write_parquet(path: Path, columns: Mapping[str, Sequence[Cell]]) -> Path:
    # Imported here: it takes a fifth of a second.
    arrow: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    # A column without a cell has no type of its own.
    texts = dict.fromkeys((HASH, DIGEST, FAULT), arrow.string())
    arrays = {name: arrow.array(list(columns[name]), texts.get(name)) for name in columns}
    try:
        parquet.write_table(arrow.table(arrays), path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
    return path
