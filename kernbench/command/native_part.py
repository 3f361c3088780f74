"""Builds the C++ part of the PyTorch device before a run whose program imports PyTorch.

In the process of a rank the compiler would take its time from the limit of `--timeout`. A program
that does not import PyTorch pays nothing: its source is searched for the import, with the modules
beside it and the installed packages that it names.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from pathlib import Path

from coordinator.plan import ProgramSpec
from kernbench.command.program_files import program_file, read_program
from runtime.core.code.native_library import NATIVE, native_library
from runtime.core.code.package_check import PACKAGES
from runtime.core.errors import UsageError

_TORCH = "torch"
_COMPILERS = ("c++", "g++", "clang++")
_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
"""Read by PyTorch: 0 imports it without devices of other packages."""


def build_native_part(program: ProgramSpec) -> None:
    """Compile the C++ part if the program needs it and it is not there. The build prints a line; if
    it fails, the text of the compiler, and `UsageError` is raised.
    """
    file = program_file(program)
    if file is None or not _is_missing() or not imports_torch(file):
        return
    done = subprocess.run(
        [sys.executable, "-m", "kernbench.torch_backend.runtime.native_build"],
        stdout=subprocess.DEVNULL,
        check=False,
        env=os.environ | {_AUTOLOAD: "0"},
    )
    if done.returncode:
        raise UsageError(
            "the C++ part of the device 'ahbm' was not built, see above; "
            f"{NATIVE}=0 runs without it"
        )


def imports_torch(file: Path) -> bool:
    """Whether a program imports PyTorch: itself, by modules of its folder, or by an installed
    package that requires it.
    """
    outside = read_program(file).outside
    if _TORCH in outside:
        return True
    others = outside - sys.stdlib_module_names - {*PACKAGES, "numpy", ""}
    packages: Mapping[str, list[str]] = packages_distributions() if others else {}
    return any(_requires_torch(each) for name in others for each in packages.get(name, ()))


def _requires_torch(distribution: str) -> bool:
    needed = requires(distribution) or ()
    return any(each.partition(";")[0].strip(" ()").startswith(_TORCH) for each in needed)


def _is_missing() -> bool:
    """Whether PyTorch and a compiler are there, and the library is not."""
    if os.environ.get(NATIVE) == "0":
        return False
    if not os.environ.get("CXX") and not any(map(shutil.which, _COMPILERS)):
        return False
    try:
        return not native_library(version(_TORCH)).exists()
    except PackageNotFoundError:
        return False
