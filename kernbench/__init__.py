"""The public interface: `from kernbench import bench, simulate, tl, torch` and others.

A name is imported on first use: a process that needs one of them does not load the others. Where
a `runtime` of the user's hides the package of kernbench, the import fails with the paths of both.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kernbench.own_runtime import hidden_runtime

if TYPE_CHECKING:
    from kernbench.oracle.theory.engines.pe_roofline import PeRoofline
    from kernbench.simulation import Simulation, simulate
    from kernbench.torch_backend.own_kernels.kernel_operator import kernel
    from runtime import torch, tp
    from runtime.core.bench_registry import (
        BenchOutcome,
        Column,
        StudyOptions,
        Table,
        TableRow,
        bench,
        study,
    )
    from runtime.language import mock, tl
    from runtime.model.placement import DPPolicy

__all__ = [
    "BenchOutcome",
    "Column",
    "DPPolicy",
    "PeRoofline",
    "Simulation",
    "StudyOptions",
    "Table",
    "TableRow",
    "bench",
    "kernel",
    "mock",
    "simulate",
    "study",
    "tl",
    "torch",
    "tp",
]

_MODULES = {
    "mock": "runtime.language.mock",
    "tl": "runtime.language.tl",
    "tp": "runtime.tp",
    "torch": "runtime.torch",
}
_OBJECTS = {
    "DPPolicy": "runtime.model.placement",
    "PeRoofline": "kernbench.oracle.theory.engines.pe_roofline",
    "Simulation": "kernbench.simulation",
    "kernel": "kernbench.torch_backend.own_kernels.kernel_operator",
    "simulate": "kernbench.simulation",
}
_REGISTRY = "runtime.core.bench_registry"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'kernbench' has no attribute {name!r}")
    if problem := hidden_runtime():
        raise ImportError(problem)
    if name in _MODULES:
        return import_module(_MODULES[name])
    try:
        return getattr(import_module(_OBJECTS.get(name, _REGISTRY)), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f"kernbench.{name} makes operators of PyTorch, which is not installed: make setup-torch"
        ) from None
