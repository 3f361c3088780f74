"""The files of a study: its JSON file, validated when it is read, and a CSV file for a spreadsheet.

The JSON file has a version, and the types of its struct.
"""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kernbench.points.task import PointFault
from runtime.core.errors import UsageError

_Results = TypeVar("_Results")


class _CommonFields(msgspec.Struct):
    version: int
    lost: tuple[PointFault, ...] = ()


def write(path: Path, results: msgspec.Struct, lost: Sequence[PointFault] = ()) -> None:
    """Write a struct as JSON; raises `UsageError` if the file cannot be written.

    The `lost` points, which have no row, are a further field.
    """
    content: dict[str, Any] = {
        name: getattr(results, name) for name in results.__struct_fields__
    } | ({"lost": lost} if lost else {})
    try:
        # Indented: a change of one row is one line in a diff.
        path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def read(path: Path, kind: type[_Results], version: int) -> _Results:
    """The struct that `write` has written; raises `UsageError` with the reason for other files."""
    try:
        content = path.read_bytes()
        # The version first: fields of another version would be reported as unknown or missing.
        common = msgspec.json.decode(content, type=_CommonFields)
        if common.version != version:
            raise UsageError(
                f"{path}: version {common.version} of the file, this is a program for version "
                f"{version}"
            )
        if common.lost:
            raise UsageError(
                f"{path}: {len(common.lost)} points have no row ({common.lost[0].point}: "
                f"{common.lost[0].reason}); --resume measures them"
            )
        return msgspec.json.decode(content, type=kind)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: {error}") from error


def write_csv(path: Path, columns: Iterable[str], lines: Iterable[Iterable[object]]) -> Path:
    """Write headings and lines, and return `path`; raises `UsageError` if that is not possible."""
    try:
        with path.open("w", newline="") as file:
            # The csv module would end lines with \r\n, which shows up in diffs.
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(lines)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    return path
