"""Builds the compiled core with the package, where a C compiler works.

Without a compiler, or with `KERNBENCH_CORE=python`, the package is installed without the core, and
its reference in Python runs. The wheel then holds no machine code and fits every platform.

All modules in C are in one shared library, from which `runtime/core/compiled/library.py` imports
them. A build keeps what it translated and compiled in the cache of the user, named by a hash of all
that it was made from; so the next build does only what has changed, and one of another checkout
finds what is equal. One build at a time runs, and the library appears in one step: a process that
starts meanwhile runs interpreted.
"""

import fcntl
import os
import sys
import tomllib
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, contextmanager, suppress
from functools import partial
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Cython and setuptools are imported where they are used: an installation without the core needs
# neither.

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    # Without both, half of the code: nothing is pickled, and no signature is inspected.
    "auto_pickle": False,
    "binding": False,
}
# A text has no types of its own: hints are for the type checker, C types are in the `.pxd`.
TEXT_DIRECTIVES = {**DIRECTIVES, "infer_types": True, "annotation_typing": False}
# No debug symbols: a fifth of the size. -O1: half of the CPU time of Python's -O3 for the build,
# and the same speed within the noise of a measurement; see docs/performance.md.
FLAGS = ["-g0", "-O1"]
ROOT = Path(__file__).resolve().parent
FOLDER = ROOT / "runtime" / "core" / "compiled"
UNUSED_S = 30 * 24 * 3600
"""Objects that no build has used for a month are deleted."""


class CompiledCore(BuildHookInterface):
    """Compiles all modules of `sources.py` into one shared library."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the build needs besides `build-system.requires`; called before `initialize`."""
        if _is_unwanted():
            return []
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        return project["optional-dependencies"]["core"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Called by hatchling before it collects the files of a wheel."""
        if _is_unwanted():
            return
        library = build_if_possible(self.app.display_warning)
        if library is None:
            return
        build_data["pure_python"], build_data["infer_tag"] = False, True
        # The library is in .gitignore, which hatchling obeys.
        build_data["artifacts"].append(f"/runtime/core/compiled/{library.name}")


def _is_unwanted() -> bool:
    return os.environ.get("KERNBENCH_CORE") == "python"


def build_if_possible(warn: Callable[[str], None]) -> Path | None:
    """The library; None after a warning where it cannot be built, unless it is requested."""
    from setuptools.errors import BaseError, CCompilerError

    try:
        return build()
    except (BaseError, CCompilerError) as error:
        # No compiler, or one without integers of 128 bits.
        if os.environ.get("KERNBENCH_CORE") == "compiled":
            raise
        warn(f"kernbench is installed without its compiled core: {error}")
        return None


def cache_folder() -> Path:
    """Where builds keep what they made: `XDG_CACHE_HOME`, else `~/.cache`, else this tree."""
    # Without a home, `Path.home` raises.
    for base in (os.environ.get("XDG_CACHE_HOME"), "~/.cache"):
        with suppress(OSError, RuntimeError):
            folder = Path(base or "").expanduser() / "kernbench" / "core"
            if base and folder.is_absolute():
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                if os.access(folder, os.W_OK):
                    return folder
    folder = ROOT / "build" / "core"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _no_other_build(cache: Path) -> Generator[None]:
    """Wait for another process that builds with this cache, perhaps in the background."""
    with (cache / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stderr.write("another process builds the compiled core; waiting for it\n")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _forget_failures(translations: Path) -> None:
    """Delete what Cython has kept of translations that failed: archives without a file."""
    for path in translations.glob("*.zip"):
        if not ZipFile(path).namelist():
            path.unlink()


def build() -> Path:
    """Translate, compile and link; returns the library, or raises after deleting an older one."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    # Relative paths, so that the C files do not depend on where this tree is. The folder is beside
    # the objects: files are moved to them, which works within a file system only.
    cache = cache_folder()
    with _no_other_build(cache), chdir(ROOT), TemporaryDirectory(dir=cache) as folder:
        found = _sources().modules(ROOT)
        _forget_failures(cache / "c")
        # The library has an init function for each, which is named by the last part of its name.
        assert len({path.stem for path in found.values()}) == len(found)
        # An older library would hide that this build fails.
        for path in (*FOLDER.glob("*.so"), *FOLDER.glob("*.pyd")):
            path.unlink()
        modules = [
            module
            for suffix, directives in ((".pyx", DIRECTIVES), (".py", TEXT_DIRECTIVES))
            for module in cythonize(
                [
                    Extension(name, [str(path.relative_to(ROOT))])
                    for name, path in found.items()
                    if path.suffix == suffix
                ],
                build_dir=folder,
                # By hash: in a new folder, no file is up to date by its time.
                cache=str(cache / "c"),
                nthreads=os.cpu_count(),
                compiler_directives=directives,
                quiet=True,
            )
        ]
        # Not the name of a module: `runtime/core/compiled/library.py` imports from it.
        twins = Extension(
            "runtime.core.compiled.twins",
            [source for module in modules for source in module.sources],
        )
        command = _linked_modules(cache / "objects")(Distribution({"ext_modules": [twins]}))
        command.build_lib, command.build_temp = str(ROOT), folder
        command.ensure_finalized()
        command.run()
        return Path(command.get_ext_fullpath(twins.name))


def _linked_modules(objects: Path) -> Any:
    """The `build_ext` of setuptools for an extension of many modules.

    It compiles the sources on all cores, except those that are kept in the folder `objects`.
    """
    objects.mkdir(exist_ok=True)
    from setuptools import Extension
    from setuptools.command.build_ext import build_ext

    class LinkedModules(build_ext):
        def build_extension(self, ext: Extension) -> None:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                linked = list(pool.map(self._object, ext.sources))
            used_s = max(path.stat().st_mtime for path in linked)
            for path in objects.glob("*.o"):
                if used_s - path.stat().st_mtime > UNUSED_S:
                    path.unlink()
            library = Path(self.get_ext_fullpath(ext.name))
            # Beside the tree's other products: within a file system.
            made = ROOT / "build" / library.name
            made.parent.mkdir(exist_ok=True)
            self.compiler.link_shared_object(
                [str(path) for path in linked],
                str(made),
                libraries=self.get_libraries(ext),
                build_temp=self.build_temp,
                target_lang="c",
            )
            # In one step: a process that starts meanwhile finds the whole library, or none.
            made.replace(library)

        def _object(self, source: str) -> Path:
            name = Path(source).stem
            macros = [("KERNBENCH_SOURCES", f'"{_digest()}"')] if name == "build" else []
            # Times would not do: a file may be replaced by an older one.
            compiler = getattr(self.compiler, "compiler_so", None)
            made_from = repr((Path(source).read_bytes(), macros, FLAGS, compiler, sys.version))
            kept = objects / f"{name}-{sha256(made_from.encode()).hexdigest()[:32]}.o"
            if kept.exists():
                kept.touch()
            else:
                [made] = self.compiler.compile(
                    [source], self.build_temp, macros, extra_postargs=FLAGS
                )
                # In one step: a build that is interrupted leaves no part of an object.
                Path(made).replace(kept)
            return kept

    return LinkedModules


def _digest() -> str:
    """The digest that the library contains."""
    return _sources().digest(ROOT, lambda content: sha256(content).hexdigest())


def _sources() -> Any:
    """The module which finds the sources; the package itself is not installed yet."""
    spec = spec_from_file_location("sources", FOLDER / "sources.py")
    assert spec is not None
    assert spec.loader is not None
    sources = module_from_spec(spec)
    spec.loader.exec_module(sources)
    return sources


if __name__ == "__main__":
    # The core alone, which `make setup` builds again after each change of its sources.
    from Cython.Compiler.Errors import CompileError

    try:
        build_if_possible(partial(print, file=sys.stderr))
    except CompileError as failed:
        # What is wrong is printed above; the stack is that of Cython.
        sys.exit(f"the compiled core is not built: Cython refuses {failed}")
