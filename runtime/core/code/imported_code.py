"""Identifies the code of a process: the SHA-256 of every source file which its modules came from.

A result depends on the code that produced it. The processes of a run import that code one by one,
and a file may be edited in between. So an LP hashes each file in the moment of its import, by a
finder on `sys.meta_path`. A later edit does not change the hash, as it does not change what the
process executes.

Covered are the packages of kernbench and the modules of the user. The standard library and
installed packages are not: their versions identify them.

A process that repeats a recorded run executes the code of that run and no other: a variable names a
file with the modules of the user and their hashes, and any other one is refused before its import.
"""

import os
import re
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from zipimport import zipimporter

from runtime.core.code.package_check import PACKAGES
from runtime.core.compiled.library import ROOT
from runtime.core.compiled.sources import source_of
from runtime.core.errors import UsageError
from runtime.core.sha256 import sha256_hex

UNREADABLE = "unreadable"
"""Stands for the hash of a module that has no file which can be read."""
SCRIPT = "__main__"
"""The name of a script which runs as `python FILE` runs it."""
SPAWNED_SCRIPT = "__mp_main__"
"""The name which multiprocessing gives to the parent's script in a child."""
EXPECTED_CODE = "KERNBENCH_EXPECTED_CODE"
"""The variable which names a file with the modules of the user that this process may import."""
_INSTALLED = re.compile("/(?:site|dist)-packages/")


class CodeFile(NamedTuple):
    """The file of one module, and the SHA-256 of its bytes as hex, or `UNREADABLE`."""

    file: str
    sha256: str


def is_of_user(module: str) -> bool:
    """Whether a covered module is of the user, and not of kernbench."""
    return module.partition(".")[0] not in PACKAGES


def expected_code() -> dict[str, CodeFile] | None:
    """The modules of the user that this process may import; None for any.

    Raises `UsageError` for a file that cannot be read.
    """
    file = os.environ.get(EXPECTED_CODE)
    if not file:
        return None
    import json

    try:
        content = json.loads(Path(file).read_bytes())
        return {module: CodeFile(*code) for module, code in content.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"{EXPECTED_CODE}: cannot read {file}: {error}") from error


class ImportRecorder:
    """Records the code that this process imports, until the process ends.

    What was imported before, it reads from the files as they are now. With `expected` modules of
    the user, the import of any other one raises `UsageError` and executes nothing.
    """

    def __init__(self, expected: Mapping[str, CodeFile] | None = None) -> None:
        self._expected = expected
        self._files = dict[str, CodeFile]()
        self._reported = dict[str, CodeFile]()
        self._libraries = _library_folders()
        finder: int = next(
            (index for index, each in enumerate(sys.meta_path) if each is PathFinder),
            len(sys.meta_path),
        )
        # Directly before Python's finder of files: it is called in place of that one.
        sys.meta_path.insert(finder, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of Python's finder of files; the import system requests it before an import."""
        spec = PathFinder.find_spec(name, path, target)
        # Read here, less than a millisecond before the loader reads it.
        if spec is not None and _is_covered(spec, self._libraries):
            self._record(name, _hashed(spec))
        return spec

    def record(self, file: Path, module: str = SCRIPT) -> None:
        """Record a file that is about to run: a script is not imported."""
        self._record(module, _hashed_file(str(file)))

    def find(self, module: str, folders: Sequence[str] = ()) -> None:
        """Record a module that will be imported later, and its parents; without any import.

        The module is searched in `folders`, then where Python and kernbench search. Without effect
        if it is not found: then its import will fail.
        """
        searched = [*folders, *sys.path, str(Path.cwd())]
        parts = module.split(".")
        for count, part in enumerate(parts, start=1):
            name = ".".join(parts[:count])
            # By its last part: for the full name of a namespace package Python needs its parent in
            # `sys.modules`, and the parent is not imported here.
            spec = PathFinder.find_spec(part, searched)
            if spec is None:
                return
            spec.name = name
            if name not in sys.modules and _is_covered(spec, self._libraries):
                self._record(name, _hashed(spec))
            if spec.origin is None:
                # A namespace package is every folder of its name.
                searched = [str(Path(folder, part)) for folder in searched]
            else:
                searched = spec.submodule_search_locations or []

    def _record(self, module: str, code: CodeFile) -> None:
        if self._expected is not None and is_of_user(module):
            resolved = CodeFile(os.path.realpath(code.file), code.sha256)
            if (known := self._expected.get(module)) != resolved:
                state = "is not a module" if known is None else "is not the content"
                raise UsageError(
                    f"module {module!r} ({resolved.file}) {state} of the recorded run: its program "
                    "has changed"
                )
        self._files[module] = code

    def news(self) -> dict[str, CodeFile]:
        """The modules whose code was recorded since the last call, by name."""
        # Modules which another finder has found, or which were imported before this object existed.
        for name, file in imported_code(self._files, self._libraries).items():
            self._files.setdefault(name, file)
        # A copy, since another thread may import meanwhile.
        files = self._files.copy()
        news = {name: file for name, file in files.items() if self._reported.get(name) != file}
        self._reported |= news
        return news

    def close(self) -> None:
        """Stop recording."""
        sys.meta_path.remove(self)


def imported_code(
    known: dict[str, CodeFile] | None = None, libraries: tuple[str, ...] | None = None
) -> dict[str, CodeFile]:
    """The modules that this process has imported, by name, with their files as they are now.

    `known` modules are left out. A script of multiprocessing's spawn method is included.
    """
    libraries = _library_folders() if libraries is None else libraries
    files = dict[str, CodeFile]()
    for name, module in list(sys.modules.items()):
        if known is not None and name in known:
            continue
        # A user may put any object into `sys.modules`.
        spec = getattr(module, "__spec__", None)
        file = getattr(module, "__file__", None)
        if isinstance(spec, ModuleSpec):
            # `python -m` runs a module under another name than its own.
            if (known is None or spec.name not in known) and _is_covered(spec, libraries):
                files[spec.name] = _hashed(spec)
        elif name == SPAWNED_SCRIPT and isinstance(file, str):
            files[name] = _hashed_file(file)
    return files


def script_of_this_process() -> dict[str, CodeFile]:
    """The script that runs in this process, under the name that it has in spawned children."""
    file = getattr(sys.modules.get(SCRIPT), "__file__", None)
    return {SPAWNED_SCRIPT: _hashed_file(file)} if isinstance(file, str) else {}


def _library_folders() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {sysconfig.get_path(name) for name in names}
    # A virtual environment uses the standard library of the interpreter it was made from.
    folders |= {str(Path(sysconfig.__file__).parent)}
    return tuple(f"{folder}/" for folder in sorted(folders))


def _is_covered(spec: ModuleSpec, libraries: tuple[str, ...]) -> bool:
    # Built-in and frozen modules have no location, namespace packages no origin.
    if not spec.has_location or spec.origin is None:
        return False
    own = spec.name.partition(".")[0] in PACKAGES
    return own or not (spec.origin.startswith(libraries) or _INSTALLED.search(spec.origin))


def _hashed(spec: ModuleSpec) -> CodeFile:
    """The file of a module: its source, or what its loader reads in place of that."""
    origin = str(spec.origin)
    source = source_of(spec.name, ROOT) if isinstance(spec.loader, ExtensionFileLoader) else None
    if source is not None:
        # Two builds of one source differ in bytes. The core is loaded only if it has the digest of
        # the sources beside it, so these identify it.
        origin = str(source)
    if isinstance(spec.loader, zipimporter):
        with suppress(OSError):
            return CodeFile(origin, sha256_hex(spec.loader.get_data(origin)))
    return _hashed_file(origin)


def _hashed_file(file: str) -> CodeFile:
    try:
        # Unbuffered and without `Path`: this runs in the import of every module.
        with open(file, "rb", buffering=0) as stream:  # noqa: PTH123
            return CodeFile(file, sha256_hex(stream.read()))
    except OSError:
        return CodeFile(file, UNREADABLE)
