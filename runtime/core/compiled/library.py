"""Imports the modules of the compiled core from the one shared library that contains all of them.

A library for each module would cost every process about 40 KB a module. Python finds a module in a
shared library by the name of its init function, so a library can contain many, each with a name of
its own.

The modules of a package `compiled` are found through an entry of its search path, like those of a
zip file. Every other one is found before its `.py`, in a process in which the compiled core runs.
"""

import sys
from collections.abc import Container
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
        """The spec with which module `name` is imported; None if it has no source in Cython."""
        source = source_of(name, ROOT)
        is_compiled = source is not None and source.suffix == ".pyx"
        return _spec(name, str(self._library)) if is_compiled else None


class CompiledModules:
    """Finds the modules `names` in `library`, also those that have a source in Python as well."""

    def __init__(self, names: Container[str], library: str) -> None:
        self._names, self._library = names, library

    def find_spec(
        self,
        fullname: str,
        path: object = None,  # noqa: ARG002
        target: object = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """The spec with which module `fullname` is imported; None if it is not compiled."""
        return _spec(fullname, self._library) if fullname in self._names else None


def path_entries(folder: Path = _FOLDER) -> list[str]:
    """The library in `folder` as an entry of the search path of a package; none if not built."""
    if LibraryFinder not in sys.path_hooks:
        sys.path_hooks.append(LibraryFinder)
    return [str(folder / name) for name in _FILES if (folder / name).exists()]


def prefer_compiled_modules(names: Container[str]) -> None:
    """Let this process import the modules `names` from the library, from now on."""
    [library] = path_entries()
    sys.meta_path.insert(0, CompiledModules(names, library))


def _spec(name: str, library: str) -> ModuleSpec | None:
    return spec_from_file_location(name, library, loader=ExtensionFileLoader(name, library))
