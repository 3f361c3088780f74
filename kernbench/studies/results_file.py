"""The JSON file of a study: versioned, and validated against the types of its struct when read."""

from pathlib import Path
from typing import TypeVar

import msgspec

from runtime.core.errors import UsageError

_Results = TypeVar("_Results")


class _VersionField(msgspec.Struct):
    version: int


def write(path: Path, results: object) -> None:
    """Write a struct as JSON; raises `UsageError` if the file cannot be written."""
    try:
        # Indented: a change of one row is one line in a diff.
        path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def read(path: Path, kind: type[_Results], version: int) -> _Results:
    """The struct that `write` has written; raises `UsageError` with the reason for other files."""
    try:
        content = path.read_bytes()
        # The version first: fields of another version would be reported as unknown or missing.
        found = msgspec.json.decode(content, type=_VersionField).version
        if found != version:
            raise UsageError(
                f"{path}: version {found} of the file, this is a program for version {version}"
            )
        return msgspec.json.decode(content, type=kind)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: {error}") from error
