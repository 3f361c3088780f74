"""The vocabulary of both sides of a run: API of the user, model of the machine, wire format.

The public names are those of `kernbench`; `from runtime import DPPolicy, bench, mock, tl, tp,
torch` gives the same objects. A name is imported on first use: a process that needs only the wire
format does not load the rest.
"""

from importlib import import_module
from typing import Any

from runtime.core.errors import nearest

_EXPORTS = {
    "DPPolicy": ("runtime.model.placement", "DPPolicy"),
    "bench": ("runtime.core.bench_registry", "bench"),
    "mock": ("runtime.language.mock", None),
    "tl": ("runtime.language.tl", None),
    "tp": ("runtime.tp", None),
    "torch": ("runtime.torch", None),
}

__all__ = ["DPPolicy", "bench", "mock", "tl", "torch", "tp"]  # pyright: ignore[reportUnsupportedDunderAll] - defined by __getattr__


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        problem = f"module 'runtime' has no attribute {name!r}"
        raise AttributeError(problem + nearest(name, __all__))
    module_name, attribute = _EXPORTS[name]
    module = import_module(module_name)
    return module if attribute is None else getattr(module, attribute)
