"""Triton itself, an optional package: what this package uses of it, without types."""

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

INTERPRET = "TRITON_INTERPRET"
_REMEDY = "make setup-triton, or pip install 'kernbench[triton]'"


def module(name: str) -> Any:
    """The module `name` of Triton; `ImportError` with the remedy where Triton is not installed, or
    was imported for a GPU.
    """
    before = sys.modules.get("triton")
    if before is None:
        # Read once, when Triton defines the functions of its language.
        os.environ[INTERPRET] = "1"
    try:
        loaded: ModuleType = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "triton":
            raise
        raise ImportError(f"Triton is not installed: {_REMEDY}") from None
    return loaded
