"""Imports the module of a bench: a file, or a module by its import path.

The command and every rank import it in the same way, so that a bench outside the package needs no
installation: the command sends the ranks the source `FILE.py:function` or `module:function`.
"""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from runtime.core.code.package_check import put_first
from runtime.core.errors import UsageError


def split_source(source: str) -> tuple[str, str]:
    """The module and the name of `module:name` or `FILE.py:name`."""
    module, _, name = source.rpartition(":")
    return module, name


def is_file(module: str) -> bool:
    """Whether `module` is a path of a Python file, as opposed to an import path."""
    return module.endswith(".py")


def import_source(module: str) -> ModuleType:
    """The module of a file or of an import path.

    A file is imported by its name, with its folder first on `sys.path`: it can import the files
    beside it, and processes that it starts find it. Modules in the working directory are found,
    too, after all others. Raises `UsageError` for a file that does not exist or that is hidden by
    a module of its name, `ModuleNotFoundError` for an unknown import path, and what the module
    raises.
    """
    if not is_file(module):
        # Last, so that a folder `sip_node` there hides nothing.
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))
        return import_module(module)
    path = Path(module).resolve()
    if not path.is_file():
        raise UsageError(f"no such file: {module}")
    put_first(path.parent)
    imported = import_module(path.stem)
    file = Path(imported.__file__ or "")
    if file.resolve() != path:
        raise UsageError(f"{path} is hidden by the module {path.stem} ({file}): rename it")
    return imported
