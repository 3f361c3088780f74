"""Whether the process imports a module: that may take minutes, and is no endless loop of a program.

The stack of the program's thread would show it as well. But a frame that another thread looks at
outlives its function, with all tensors in its local variables: their memory would be free at a
moment that depends on the wall clock, and so would the addresses of later tensors.
"""

import sys


def imports_module() -> bool:
    """Whether a module of this process is being executed by an import."""
    return any(_is_initializing(module) for module in list(sys.modules.values()))


def _is_initializing(module: object) -> bool:
    # Not by `getattr` on the module, which may have a `__getattr__` of its own.
    spec = getattr(module, "__dict__", {}).get("__spec__")
    return getattr(spec, "_initializing", False) is True
