"""Path of the library with the compiled C++ part of the PyTorch device.

The launcher of a run looks for it without PyTorch, whose import takes seconds; the process of a
rank loads it.
"""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from runtime.core.sha256 import sha256_hex

NAME = "kernbench_ahbm"
NATIVE = "KERNBENCH_TORCH_NATIVE"
"""Set by the user: 0 runs without the C++ part, in the reduced mode."""
FLAGS = ("-O1", "-g0", "-fPIC", "-shared", "-std=c++20", "-fvisibility=hidden")
_PROJECT = Path(__file__).parents[3]
SOURCE = _PROJECT / "kernbench" / "torch_backend" / "native" / "device.cpp"


def native_library(torch_version: str) -> Path:
    """The library for a version of PyTorch: in `build/torch` below the project, or in the cache of
    the user where kernbench is installed as a wheel, under a name with the hash of all that it is
    made from.
    """
    made_from = (SOURCE.read_text(), torch_version, sys.version, *FLAGS)
    digest = sha256_hex("\0".join(made_from).encode())[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kernbench"
    room = _PROJECT / "build" if (_PROJECT / "pyproject.toml").exists() else cache
    return room / "torch" / f"{NAME}_{digest}{EXTENSION_SUFFIXES[0]}"
