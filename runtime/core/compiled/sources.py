"""Identifies the sources of the compiled core; the build hook and the import compare the result."""

from collections.abc import Callable, Iterator
from pathlib import Path

ROOMS = ("coordinator/compiled", "runtime/core/compiled", "sip_node/compiled")
"""The folders with sources, in the order in which they are read."""
_SUFFIXES = (".pxd", ".pyx")


def sources(root: Path) -> Iterator[Path]:
    """The Cython sources of the tree `root`, in their order."""
    for room in ROOMS:
        # A part of the tree may be installed without sources.
        if (root / room).is_dir():
            yield from sorted(each for each in (root / room).iterdir() if each.suffix in _SUFFIXES)


def source_of(name: str, root: Path) -> Path | None:
    """The source of module `name` in the tree `root`; None for a module that is not compiled."""
    path = root / f"{name.replace('.', '/')}.pyx"
    return path if path.parent.relative_to(root).as_posix() in ROOMS and path.exists() else None


def digest(root: Path, hexadecimal: Callable[[bytes], str]) -> str:
    """The hash of the names and the contents of the Cython sources in the tree `root`."""
    content = list[bytes]()
    for path in sources(root):
        content.append(f"{path.relative_to(root).as_posix()}\0".encode())
        content.append(path.read_bytes() + b"\0")
    return hexadecimal(b"".join(content))
