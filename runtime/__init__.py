"""What user code imports: `from runtime import DPPolicy, bench, mock, tl, torch`.

Names are loaded on first use, so that a process that needs only the wire format does not load the rest.
"""

from importlib import import_module
from typing import Any

_EXPORTS = {
    "DPPolicy": ("runtime.model.placement", "DPPolicy"),
    "bench": ("runtime.core.bench_registry", "bench"),
    "mock": ("runtime.language.mock", None),
    "tl": ("runtime.language.tl", None),
    "torch": ("runtime.torch", None),
}

__all__ = ["DPPolicy", "bench", "mock", "tl", "torch"]  # pyright: ignore[reportUnsupportedDunderAll] - loaded by __getattr__


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'runtime' has no attribute {name!r}")
    module_name, attribute = _EXPORTS[name]
    module = import_module(module_name)
    return module if attribute is None else getattr(module, attribute)
