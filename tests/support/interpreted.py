"""Modules as the interpreter runs them, in a process in which the compiled core runs."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def interpreted(name: str) -> ModuleType:
    """Another copy of module `name`, made from its `.py`. What it imports is that of the core."""
    path = (ROOT / name.replace(".", "/")).with_suffix(".py")
    spec = spec_from_file_location(f"{name} interpreted", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
