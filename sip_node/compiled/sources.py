"""Identifies the sources of the compiled core; the build hook and the import compare the result."""

from hashlib import sha256
from pathlib import Path

SUFFIXES = (".pxd", ".pyx")


def digest(folder: Path) -> str:
    """SHA-256 over the names and the contents of the Cython sources in `folder`."""
    found = sha256()
    for path in sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES):
        found.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()
