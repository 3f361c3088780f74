"""The CSV file of a study: its main columns for a spreadsheet."""

import csv
from collections.abc import Iterable
from pathlib import Path

from runtime.core.errors import UsageError


def write(path: Path, columns: Iterable[str], lines: Iterable[Iterable[object]]) -> Path:
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
