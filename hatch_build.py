"""Builds the compiled core with the package, where a C compiler works.

Without a compiler the package is installed without the core, and its reference in Python runs. The
wheel then holds no machine code and fits every platform.
"""

import os
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from Cython.Build import cythonize
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
}
ROOM = Path(__file__).parent / "sip_node" / "compiled"


class CompiledCore(BuildHookInterface):
    """Compiles every `.pyx` of `sip_node/compiled` to an extension module beside it."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Called by hatchling before it collects the files of a wheel."""
        # An older extension would hide that the build below fails.
        _delete_extensions()
        try:
            built = _build()
        except (BaseError, CCompilerError) as error:
            # No compiler, or one without integers of 128 bits. One module alone is no core.
            _delete_extensions()
            if os.environ.get("KERNBENCH_CORE") == "compiled":
                raise
            self.app.display_warning(f"kernbench is installed without its compiled core: {error}")
            return
        build_data["pure_python"], build_data["infer_tag"] = False, True
        # Extension modules are in .gitignore, which hatchling obeys.
        build_data["artifacts"] += [f"/sip_node/compiled/{path.name}" for path in built]


def _extensions() -> list[Path]:
    return sorted([*ROOM.glob("*.so"), *ROOM.glob("*.pyd")])


def _delete_extensions() -> None:
    for path in _extensions():
        path.unlink()


def _build() -> list[Path]:
    """Translate to C and compile; returns the extension modules."""
    digest = ("KERNBENCH_SOURCES", f'"{_digest()}"')
    extensions = [
        Extension(
            f"sip_node.compiled.{path.stem}",
            [str(path)],
            define_macros=[digest] if path.stem == "build" else [],
            # Without debug symbols: a fifth of the size.
            extra_compile_args=["-g0"],
        )
        for path in sorted(ROOM.glob("*.pyx"))
    ]
    with TemporaryDirectory() as folder:
        modules = cythonize(
            extensions, build_dir=folder, compiler_directives=DIRECTIVES, quiet=True
        )
        command = build_ext(Distribution({"ext_modules": modules}))
        command.build_lib, command.build_temp = str(ROOM.parents[1]), folder
        command.parallel = True
        command.ensure_finalized()
        command.run()
    return _extensions()


def _digest() -> str:
    """The digest that the extensions contain; the package itself is not installed yet."""
    spec = spec_from_file_location("sources", ROOM / "sources.py")
    assert spec is not None
    assert spec.loader is not None
    sources = module_from_spec(spec)
    spec.loader.exec_module(sources)
    return sources.digest(ROOM)
