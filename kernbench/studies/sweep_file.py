"""The JSON file of a study: written with its version, and read back only by the program of that version."""

from pathlib import Path
from typing import TypeVar

import msgspec

from runtime.core.errors import UsageError

_Sweep = TypeVar("_Sweep", bound=msgspec.Struct)


class _Head(msgspec.Struct):
    version: int


def write(path: Path, sweep: msgspec.Struct) -> None:
    """Write the file; raises `UsageError` where that is not possible."""
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(sweep), indent=1) + b"\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def read(path: Path, kind: type[_Sweep], version: int) -> _Sweep:
    """The `kind` that `write` has written; raises `UsageError` that says what is wrong with the file."""
    try:
        content = path.read_bytes()
        found = msgspec.json.decode(content, type=_Head).version
        if found != version:
            raise UsageError(
                f"{path}: version {found} of the file, this is a program for version {version}"
            )
        return msgspec.json.decode(content, type=kind)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: {error}") from error
