"""Detects modules of the user that hide a package of kernbench.

Python imports the first module of a name that it finds on `sys.path`. A `runtime.py` in the folder
of a script precedes the package `runtime`, and the import then fails with the name of something
that this file does not define. The check here compares where an import would look first with where
the packages of kernbench are.
"""

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

from runtime.core.errors import UsageError

PACKAGES = ("runtime", "sip_node", "coordinator", "kernbench")
ROOT = Path(__file__).parents[3]
"""The folder that contains the packages."""
FOLDERS = tuple(f"{ROOT / name}{os.sep}" for name in PACKAGES)
"""The folders of the packages, each with a separator behind it."""


def check_packages(*folders: str) -> None:
    """Raise `UsageError` if an import of a package of kernbench would find another module.

    Imports search `folders` and then `sys.path`.
    """
    for name in PACKAGES:
        # Not `importlib.util.find_spec`: it returns a module that has been imported already.
        spec = PathFinder.find_spec(name, [*folders, *sys.path])
        own = ROOT / name / "__init__.py"
        # A folder without `__init__.py` has no origin; it does not precede a package.
        if spec is None or spec.origin is None or Path(spec.origin).samefile(own):
            continue
        raise UsageError(f"{spec.origin} hides kernbench's package {name} ({own}): rename it")


def is_own(file: Path | str) -> bool:
    """Whether the file, or the folder, belongs to a package of kernbench."""
    # As texts: an LP compares the files of all of its modules.
    return f"{file}{os.sep}".startswith(FOLDERS)


def put_first(folder: Path) -> None:
    """Put `folder` first on `sys.path`, as Python does with the folder of a script, and check it.

    Raises `UsageError` if a module in it hides a package of kernbench.
    """
    if sys.path[0] != str(folder):
        sys.path.insert(0, str(folder))
    check_packages()
