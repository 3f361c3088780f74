"""Detects a `runtime` of the user's in place of kernbench's, before anything of it is imported.

All other packages are checked by `runtime.core.code.package_check`, once `runtime` is the right
one.
"""

from importlib.machinery import PathFinder
from pathlib import Path


def hidden_runtime() -> str | None:
    """The error in one line; None if `import runtime` finds the package of kernbench."""
    spec = PathFinder.find_spec("runtime")
    own = Path(__file__).parents[1] / "runtime" / "__init__.py"
    if spec is None or spec.origin is None or Path(spec.origin).samefile(own):
        return None
    return f"{spec.origin} hides kernbench's package runtime ({own}): rename it"
