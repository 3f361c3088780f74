"""Builds the compiled core with the package, where a C compiler works.

Without a compiler, or with `KERNBENCH_CORE=python`, the package is installed without the core, and
its reference in Python runs. The wheel then holds no machine code and fits every platform.

All modules in C are in one shared library, from which `runtime/core/compiled/library.py` imports
them. A build keeps what it compiled in the cache of the user, named by a hash of all that it was
made from; so the next build translates and compiles only what has changed, and one of another
checkout finds what is equal. One build at a time runs, and the library appears in one step: a
process that starts meanwhile runs interpreted.
"""

import fcntl
import gc
import os
import re
import sys
import tomllib
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, contextmanager, suppress
from functools import cache, partial
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from multiprocessing import get_context
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

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
# and the same speed within the noise of a measurement; see docs/internals/speed.md.
FLAGS = ["-g0", "-O1"]
ROOT = Path(__file__).resolve().parent
FOLDER = ROOT / "runtime" / "core" / "compiled"
_QUOTED = re.compile(rb'^\s*/\* ".*?\*/', re.MULTILINE | re.DOTALL)
_CIMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+)?cimport[ \t]+(\([^)]*\)|.*)", re.MULTILINE
)
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


def build() -> Path:
    """Translate, compile and link; returns the library, or raises after deleting an older one."""
    from setuptools import Distribution, Extension

    # Relative paths, so that the C files do not depend on where this tree is. The folder is beside
    # the objects: files are moved to them, which works within a file system only.
    cache = cache_folder()
    with _no_other_build(cache), chdir(ROOT), TemporaryDirectory(dir=cache) as folder:
        found = [str(path.relative_to(ROOT)) for path in _sources().modules(ROOT).values()]
        # The library has an init function for each, which is named by the last part of its name.
        assert len({Path(source).stem for source in found}) == len(found)
        # An older library would hide that this build fails.
        for path in (*FOLDER.glob("*.so"), *FOLDER.glob("*.pyd")):
            path.unlink()
        # Not the name of a module: `runtime/core/compiled/library.py` imports from it.
        twins = Extension("runtime.core.compiled.twins", found)
        command = _linked_modules(cache / "objects")(Distribution({"ext_modules": [twins]}))
        command.build_lib, command.build_temp = str(ROOT), folder
        command.ensure_finalized()
        command.run()
        return Path(command.get_ext_fullpath(twins.name))


def _linked_modules(objects: Path) -> Any:
    """The `build_ext` of setuptools for an extension of many modules of Cython.

    It translates and compiles them on all cores, except those that are kept in the folder
    `objects`.
    """
    objects.mkdir(exist_ok=True)
    from setuptools import Extension
    from setuptools.command.build_ext import build_ext

    class LinkedModules(build_ext):
        def build_extension(self, ext: Extension) -> None:
            kept = _kept_objects(ext.sources, objects, self._compiler())
            missing = [source for source, path in kept.items() if not path.exists()]
            _translate(missing, Path(self.build_temp))
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(self._compile, missing, [kept[source] for source in missing]))
            _delete_unused(objects, list(kept.values()))
            library = Path(self.get_ext_fullpath(ext.name))
            # Beside the tree's other products: within a file system.
            made = ROOT / "build" / library.name
            made.parent.mkdir(exist_ok=True)
            self.compiler.link_shared_object(
                [str(path) for path in kept.values()],
                str(made),
                libraries=self.get_libraries(ext),
                build_temp=self.build_temp,
                target_lang="c",
            )
            # In one step: a process that starts meanwhile finds the whole library, or none.
            made.replace(library)

        def _compiler(self) -> object:
            return getattr(self.compiler, "compiler_so", None)

        def _compile(self, source: str, kept: Path) -> None:
            translation = _translation(source, Path(self.build_temp))
            # An edit of a `.pxd` may change no more than the comments which quote it.
            code = _QUOTED.sub(b"", translation.read_bytes())
            made_from = repr((code, _macros(source), FLAGS, self._compiler(), sys.version))
            same = objects / _object_name(source, made_from)
            if not same.exists():
                [made] = self.compiler.compile(
                    [str(translation)], self.build_temp, _macros(source), extra_postargs=FLAGS
                )
                # In one step: a build that is interrupted leaves no part of an object.
                Path(made).replace(same)
            same.touch()
            copyfile(same, translation.with_suffix(".o")).replace(kept)

    return LinkedModules


def _kept_objects(sources: list[str], objects: Path, compiler: object) -> dict[str, Path]:
    """The object of each source, which is named by a hash of all that it is made from."""
    from Cython import __version__

    common = (__version__, DIRECTIVES, TEXT_DIRECTIVES, FLAGS, compiler, sys.version)
    kept = dict[str, Path]()
    for source, used in _used(sources).items():
        # Contents: times would not do, since a file may be replaced by an older one. Those of
        # Cython itself, with absolute paths, have its version.
        contents = [(str(path), path.read_bytes()) for path in used if not path.is_absolute()]
        made_from = repr((source, contents, _macros(source), common))
        kept[source] = objects / _object_name(source, made_from)
    return kept


def _delete_unused(objects: Path, used: list[Path]) -> None:
    """Delete objects that no build has used for a month; `used` are those of this one."""
    for path in used:
        path.touch()
    used_s = max(path.stat().st_mtime for path in used)
    for path in objects.glob("*.o"):
        if used_s - path.stat().st_mtime > UNUSED_S:
            path.unlink()


def _used(sources: list[str]) -> dict[str, list[Path]]:
    """The files from which each source is translated: itself and the `.pxd` that it reaches.

    Cython's own search does not see `from package cimport module`.
    """
    from Cython import __file__ as cython

    roots = (Path(), Path(cython).parent / "Includes")

    @cache
    def cimported(path: Path) -> list[Path]:
        text = path.read_text("utf-8")
        names = list[str]()
        for package, listed in _CIMPORT.findall(text.replace("\\\n", " ")):
            several = re.findall(r"[\w.]+", listed)
            prefix = f"{package}." if package else ""
            names += [package, *(prefix + name for name in several)]
        places = [Path(root, *name.split(".")) for name in names if name for root in roots]
        own = path.with_suffix(".pxd")
        found = [
            own,
            *(each.with_suffix(".pxd") for each in places),
            *(each / "__init__.pxd" for each in places),
        ]
        return [path for path in found if path.exists()]

    used = dict[str, list[Path]]()
    for source in sources:
        reached, waiting = set[Path](), [Path(source)]
        while waiting:
            path = waiting.pop()
            if path not in reached:
                reached.add(path)
                waiting += cimported(path)
        used[source] = sorted(reached)
    return used


def _context(directives: dict[str, Any], used: dict[str, list[Path]]) -> Any:
    """The context of Cython in which each `.pxd` of this tree among the files `used` is read."""
    from Cython.Compiler import Errors
    from Cython.Compiler.Main import Context
    from Cython.Compiler.Options import CompilationOptions

    options = CompilationOptions(compiler_directives=directives, include_path=["."])
    context = Context.from_options(options)
    Errors.open_listing_file(None)
    for path in sorted({path for paths in used.values() for path in paths}):
        if path.suffix == ".pxd" and not path.is_absolute():
            context.find_module(_module(path))
            if Errors.get_errors_count():
                raise Errors.CompileError(None, str(path))
    return context


def _translate(sources: list[str], folder: Path) -> None:
    """Translate `sources` to C in `folder`, on all cores.

    Each `.pxd` is read once, which is most of the work, and each source is translated by a copy of
    the process that has read them: Cython changes what it has read while it translates. Raises
    `CompileError` after Cython has printed the reason.
    """
    from Cython.Compiler.Errors import CompileError

    failed, running = list[str](), deque[Any]()

    def finish() -> None:
        running[0].join()
        if running[0].exitcode:
            failed.append(running[0].name)
        running.popleft()

    for suffix, directives in ((".pyx", DIRECTIVES), (".py", TEXT_DIRECTIVES)):
        used = _used([source for source in sources if source.endswith(suffix)])
        context = _context(directives, used)
        for source, paths in used.items():
            if len(running) == os.cpu_count():
                finish()
            arguments = (context, source, paths, _translation(source, folder))
            running.append(get_context("fork").Process(None, _translate_one, source, arguments))
            running[-1].start()
    while running:
        finish()
    if failed:
        raise CompileError(None, ", ".join(failed))


def _translate_one(context: Any, source: str, used: list[Path], made: Path) -> None:
    """Translate `source` in a process of its own, which ends with an error if it is refused."""
    from Cython.Compiler.Main import compile_single

    # What is collected would be copied from the other process.
    gc.disable()
    made.parent.mkdir(parents=True, exist_ok=True)
    context.options.output_file = str(made)
    # Inline functions of a `.pxd` become parts of each module that uses it, and of no other.
    files = {path.absolute() for path in used}
    context.pxds = {
        name: pxd
        for name, pxd in context.pxds.items()
        if Path(pxd[0].pos[0].filename).absolute() in files
    }
    name = _module(Path(source))
    sys.exit(compile_single(source, context.options, name, context=context).num_errors > 0)


def _object_name(source: str, made_from: str) -> str:
    return f"{Path(source).stem}-{sha256(made_from.encode()).hexdigest()[:32]}.o"


def _translation(source: str, folder: Path) -> Path:
    return (folder / source).with_suffix(".c")


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts)


def _macros(source: str) -> list[tuple[str, str]]:
    """The macros with which C is compiled: the digest is a part of the module `build`."""
    return [("KERNBENCH_SOURCES", f'"{_digest()}"')] if Path(source).stem == "build" else []


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
