"""The kernels of the table of docs/internals/triton-kernels.md, in its order."""

from importlib import import_module

from tests.triton.cases import CASES

_MODULES = (
    *("tutorials", "tutorials_attention", "layers", "losses", "serving", "experts"),
    *("products", "language", "types", "atomics"),
)
for _name in _MODULES:
    # Each module adds its kernels to the table.
    import_module(f"tests.triton.kernels_{_name}")
ALL = tuple(CASES.values())
