"""Identifies the sources of the compiled core; the build hook and the import compare the result.

A `.py` with a `.pxd` beside it is one *text*, and the `.pxd` has its C types: the same file is
compiled, or interpreted. A part of the *kernel* has two versions: a `.pyx`, with its `.pxd`, is
compiled, and the `.py` beside it interpreted. In folders `compiled` and `kernel` a `.pxd` with a
`.py` has functions which are parts of their callers in C, and the `.py` those of the interpreter.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

PACKAGES = ("coordinator", "runtime/core", "sip_node")
"""The folders with sources, at any depth, in the order in which they are read."""
_OF_THE_KERNEL = ("compiled", "kernel")


def sources(root: Path) -> Iterator[Path]:
    """The sources of the compiled core in the tree `root`, in their order."""
    for package in PACKAGES:
        # Not `Path.rglob`, which takes 10 ms at the start of every process.
        for folder, folders, files in os.walk(root / package):
            folders.sort()
            names = set(files)
            for name in sorted(files):
                stem, _, suffix = name.rpartition(".")
                is_text = (
                    suffix == "py"
                    and f"{stem}.pxd" in names
                    and f"{stem}.pyx" not in names
                    and not folder.endswith(_OF_THE_KERNEL)
                )
                if is_text or suffix in ("pxd", "pyx"):
                    yield Path(folder, name)


def modules(root: Path) -> dict[str, Path]:
    """The source of every module of the compiled core in the tree `root`, by the module's name."""
    return {
        ".".join(path.relative_to(root).with_suffix("").parts): path
        for path in sources(root)
        if path.suffix != ".pxd"
    }


def source_of(name: str, root: Path) -> Path | None:
    """The source of the compiled module `name` in the tree `root`; None for any other module."""
    if not any(name.startswith(f"{package.replace('/', '.')}.") for package in PACKAGES):
        return None
    path = root / name.replace(".", "/")
    candidates = (path.with_suffix(suffix) for suffix in (".pyx", ".py"))
    return next((each for each in candidates if each.exists()), None)


def digest(root: Path, hexadecimal: Callable[[bytes], str]) -> str:
    """The hash of the names and the contents of the sources in the tree `root`."""
    content = list[bytes]()
    for path in sources(root):
        content.append(f"{path.relative_to(root).as_posix()}\0".encode())
        content.append(path.read_bytes() + b"\0")
    return hexadecimal(b"".join(content))
