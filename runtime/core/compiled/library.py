"""Imports the modules of the compiled core from the one shared library that contains all of them.

A library for each module would cost every process about 40 KB a module. Python finds a module in a
shared library by the name of its init function, so a library can contain many. Like a zip file of
modules, it is an entry in the search path of the package, and has a finder of its own.
"""

import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

from runtime.core.compiled.sources import source_of

_FOLDER = Path(__file__).parent
ROOT = _FOLDER.parents[2]
"""The tree of the sources."""
_FILES = tuple(f"twins{suffix}" for suffix in EXTENSION_SUFFIXES)
"""The names that the build may give to the library, by platform and version of Python."""


class LibraryFinder:
    """Finds the modules of C in the library that is the path entry `entry`."""

    def __init__(self, entry: str) -> None:
        """Raises `ImportError`, as the import system expects, for an entry of any other kind."""
        self._library = Path(entry)
        if self._library.name not in _FILES:
            raise ImportError(f"{entry} is not the library of the compiled core")

    def find_spec(self, name: str, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        """How to import module `name`, or None if it has no source in Cython."""
        if source_of(name, ROOT) is None:
            return None
        library = str(self._library)
        return spec_from_file_location(name, library, loader=ExtensionFileLoader(name, library))


def path_entries(folder: Path = _FOLDER) -> list[str]:
    """The library in `folder` as an entry of the search path of a package; none if not built."""
    if LibraryFinder not in sys.path_hooks:
        sys.path_hooks.append(LibraryFinder)
    return [str(folder / name) for name in _FILES if (folder / name).exists()]
