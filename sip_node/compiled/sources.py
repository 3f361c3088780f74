"""Identifies the sources of the compiled core; the build hook and the import compare the result."""

from collections.abc import Callable
from pathlib import Path

SUFFIXES = (".pxd", ".pyx")


def digest(folder: Path, hexadecimal: Callable[[bytes], str]) -> str:
    """The hash of the names and the contents of the Cython sources in `folder`."""
    content = list[bytes]()
    for path in sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES):
        content.append(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return hexadecimal(b"".join(content))
