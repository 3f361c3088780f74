"""Chooses the core of this process: compiled, or interpreted.

The environment variable `KERNBENCH_CORE` decides. Without it the compiled core runs where it is
built. The choice is made when this module is imported, before any module that is compiled, and all
processes of a run inherit the variable.
"""

import os
from functools import cache
from importlib.util import find_spec

from runtime.core.compiled.library import ROOT, prefer_compiled_modules
from runtime.core.compiled.sources import digest, module_names, relative_sources
from runtime.core.errors import UsageError
from runtime.core.sha256 import sha256_hex

VARIABLE = "KERNBENCH_CORE"
PYTHON, COMPILED = "python", "compiled"
_REBUILD = "run `make core`, or `pip install --editable .`, with a C compiler"


def choose(requested: str | None) -> str:
    """The core for a value of the variable, `PYTHON` or `COMPILED`.

    Raises `UsageError` for an unknown value, for a compiled core that is requested and not built,
    and for one that was built from other sources than those beside it.
    """
    if requested == PYTHON:
        return PYTHON
    if requested not in (None, "", COMPILED):
        raise UsageError(
            f"{VARIABLE}={requested!r} is no core: use {PYTHON!r}, or {COMPILED!r}, or unset it"
        )
    if find_spec("runtime.core.compiled.build") is None:
        if requested == COMPILED:
            raise UsageError(
                f"{VARIABLE}={COMPILED}: the compiled core is not built. To build it, {_REBUILD}"
            )
        return PYTHON
    from runtime.core.compiled.build import SOURCES

    if digest(ROOT, sha256_hex, _paths()) != SOURCES:
        raise UsageError(
            "the compiled core was built from other sources than those beside it. To rebuild "
            f"it, {_REBUILD}; {VARIABLE}={PYTHON} runs without it"
        )
    return COMPILED


@cache
def _paths() -> list[str]:
    """The paths of the sources, which are searched once."""
    return relative_sources(ROOT)


def is_fallback(core: str, requested: str | None) -> bool:
    """Whether the interpreter runs because the core is not built, and without a request."""
    return core == PYTHON and not requested


CORE = choose(os.environ.get(VARIABLE))
IS_COMPILED = CORE == COMPILED
IS_FALLBACK = is_fallback(CORE, os.environ.get(VARIABLE))
if IS_COMPILED:
    prefer_compiled_modules(module_names(_paths()))
