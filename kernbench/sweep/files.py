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
from kernbench.studies import results_file
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
def sweep_directory(
    out: Path | None, name: str, unfinished: SweepDescription | None = None
) -> Generator[Path]:
    """The directory `out`, by default the next `sweeps/NNNN-name`, created and locked.

    By default it is the last of these if that has the sweep `unfinished`, interrupted before its
    table was written. Raises `UsageError` if it cannot be written, or if another sweep writes to
    it.
    """
    directory = out or Path(_SWEEPS)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = _locked(directory) if out else _numbered(directory, name, unfinished)
    except OSError as error:
        raise UsageError(f"--out: cannot write to {directory}: {error.strerror}") from error
    try:
        yield lock.directory
    finally:
        lock.release()


def _locked(directory: Path) -> RunLock:
    try:
        return RunLock(directory)
    except UsageError as error:
        raise UsageError(f"--out: {error}; give this sweep another directory") from error


def _numbered(sweeps: Path, name: str, unfinished: SweepDescription | None) -> RunLock:
    """The lock of the last directory if it can go on, else of a new one."""
    earlier = sorted(sweeps.glob(f"[0-9][0-9][0-9][0-9]-{name}"))
    if unfinished is not None and earlier and not (earlier[-1] / CSV).exists():
        # A description of another version, or a sweep that is running.
        with suppress(UsageError):
            if read_description(earlier[-1]) == unfinished:
                return RunLock(earlier[-1])
    return RunLock(next_numbered(sweeps, name))


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
    kept = read_description(directory)
    if kept is None:
        return
    shown = {"metric": description.metric, "plot": description.plot}
    if msgspec.structs.replace(kept, **shown) != description:
        raise UsageError(
            f"--out: {directory} has another sweep, of {kept.program}: --resume keeps its rows of "
            "the same points, --no-resume replaces it"
        )


def write_table(directory: Path, columns: Mapping[str, Sequence[Cell]]) -> list[Path]:
    """Write the CSV and the Parquet file; raises `UsageError` if that is not possible."""
    lines = zip(*([_csv_cell(cell) for cell in cells] for cells in columns.values()), strict=True)
    return [
        results_file.write_csv(directory / CSV, columns, lines),
        _write_parquet(directory / PARQUET, columns),
    ]


def _csv_cell(cell: Cell) -> object:
    return "" if cell is None else plain(cell)


def _write_parquet(path: Path, columns: Mapping[str, Sequence[Cell]]) -> Path:
    # Imported here: it takes a fifth of a second.
    arrow: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    # A column without a cell has no type of its own.
    text, texts = arrow.string(), (HASH, DIGEST, FAULT)
    arrays = {
        name: arrow.array(list(cells), text if name in texts else None)
        for name, cells in columns.items()
    }
    try:
        parquet.write_table(arrow.table(arrays), path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
    return path
