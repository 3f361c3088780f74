"""Identifies the sources of the compiled core; the build hook and the import compare the result.

A `.py` with a `.pxd` beside it is one *text*, and the `.pxd` has its C types: the same file is
compiled, or interpreted. A part of the *kernel* has two versions: a `.pyx`, with its `.pxd`, is
compiled, and the `.py` beside it interpreted. In folders `compiled` and `kernel` a `.pxd` with a
`.py` has functions which are parts of their callers in C, and the `.py` those of the interpreter.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

PACKAGES = ("coordinator", "runtime/core", "sip_node")
"""The folders with sources, at any depth, in the order in which they are read."""
_OF_THE_KERNEL = ("compiled", "kernel")


def relative_sources(root: Path) -> list[str]:
    """The paths of the sources of the compiled core relative to the tree `root`, in their order."""
    # Texts in place of `Path`, here and below: every process of a run reads all sources.
    start = len(f"{root}{os.sep}")
    listed = list[str]()
    for package in PACKAGES:
        for folder, folders, files in os.walk(root / package):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
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
                    listed.append(f"{folder[start:]}/{name}")
    return listed


def sources(root: Path) -> Iterator[Path]:
    """The sources of the compiled core in the tree `root`, in their order."""
    return (root / path for path in relative_sources(root))


def module_names(paths: Iterable[str]) -> set[str]:
    """The names of the modules of the compiled core, of which the sources are `paths`."""
    parts = (path.rpartition(".") for path in paths)
    return {stem.replace("/", ".") for stem, _, suffix in parts if suffix != "pxd"}


def modules(root: Path) -> dict[str, Path]:
    """The source of every module of the compiled core in the tree `root`, by the module's name."""
    return {name: root / path for path in relative_sources(root) for name in module_names([path])}


def source_of(name: str, root: Path) -> Path | None:
    """The source of the compiled module `name` in the tree `root`; None for any other module."""
    if not any(name.startswith(f"{package.replace('/', '.')}.") for package in PACKAGES):
        return None
    path = f"{root}/{name.replace('.', '/')}"
    candidates = (f"{path}{suffix}" for suffix in (".pyx", ".py"))
    return next((Path(each) for each in candidates if os.path.exists(each)), None)  # noqa: PTH110 - see above


def digest(
    root: Path, hexadecimal: Callable[[bytes], str], paths: Iterable[str] | None = None
) -> str:
    """The hash of the names and the contents of the sources in the tree `root`.

    `paths` are its `relative_sources`, where the caller has them.
    """
    content = list[bytes]()
    for path in relative_sources(root) if paths is None else paths:
        with open(f"{root}/{path}", "rb", buffering=0) as source:  # noqa: PTH123 - see above
            content += f"{path}\0".encode(), source.read(), b"\0"
    return hexadecimal(b"".join(content))
