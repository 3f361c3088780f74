"""Builds and loads the part of the backend which PyTorch takes in C++ only.

One file is compiled with the headers of the installed PyTorch, once for each version of it: by
`make setup-torch`, before a run whose program imports PyTorch, or else in the first rank that does.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import torch
from torch.utils import cpp_extension

from kernbench.torch_backend.runtime.no_device import note
from runtime.core.code.native_library import FLAGS, NAME, NATIVE, SOURCE, native_library


class NoNativePartError(Exception):
    """There is no C++ part, for the reason in the text: the device has its reduced mode."""


def native_module() -> ModuleType:
    """The extension module, which is compiled if it is not there.

    `NoNativePartError` without a C++ compiler, and where the environment selects the reduced
    mode; `ImportError` with the text of the compiler if it fails, or for a compiler in CXX that is
    not there.
    """
    _check_environment()
    library = native_library(torch.__version__)
    if not library.exists():
        with _lock(library.parent):
            # Another rank may have compiled it meanwhile.
            if not library.exists():
                _compile(library)
    spec = spec_from_file_location(NAME, library)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def _lock(room: Path) -> Generator[None]:
    """One process at a time compiles in `room`."""
    room.mkdir(parents=True, exist_ok=True)
    with (room / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _check_environment() -> None:
    value = os.environ.get(NATIVE, "")
    if value not in ("", "0", "1"):
        raise ImportError(
            f"{NATIVE} is {value!r}: 0 runs without the C++ part of the device 'ahbm', 1 or "
            "nothing with it"
        )
    if value == "0":
        raise NoNativePartError(f"its C++ part (allocator, hooks) is switched off by {NATIVE}=0")


def _compiler() -> str:
    named = os.environ.get("CXX", "")
    if named:
        compiler = shutil.which(named)
        if compiler is None:
            raise ImportError(f"CXX is {named!r}, which is no program: name a C++ compiler")
        return compiler
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise NoNativePartError(
            "it has a part in C++ (allocator, hooks), and there is no C++ compiler here"
        )
    return compiler


def _compile(library: Path) -> None:
    compiler = _compiler()
    print(
        f"kernbench: compiling the C++ part of the device 'ahbm' for PyTorch {torch.__version__}, "
        "once",
        file=sys.stderr,
        flush=True,
    )
    unfinished = library.with_suffix(".unfinished")
    includes = [*cpp_extension.include_paths(), sysconfig.get_path("include")]
    libraries = cpp_extension.library_paths()
    command = [
        compiler,
        *FLAGS,
        f"-DTORCH_EXTENSION_NAME={NAME}",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *(f"-isystem{each}" for each in includes),
        str(SOURCE),
        *(f"-L{each}" for each in libraries),
        *(f"-Wl,-rpath,{each}" for each in libraries),
        *("-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"),
        "-o",
        str(unfinished),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise ImportError(
            f"the C++ part of the device 'ahbm' does not compile with {compiler}:\n"
            f"{done.stderr.strip()[-4000:]}"
        )
    unfinished.replace(library)


if __name__ == "__main__":
    try:
        print(native_module().__file__)
    except NoNativePartError as lacking:
        print(note(str(lacking)))
    except ImportError as problem:
        sys.exit(f"kernbench: error: {problem}")
