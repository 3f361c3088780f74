"""The arithmetic of one step of the GEMM engine in C, as Python sees it."""

from collections.abc import Callable
from typing import Any

class TileProducts:
    def __init__(self, reference: Callable[[Any, Any, Any], Any]) -> None: ...
    def accumulate(self, acc: Any, a: Any, b: Any) -> Any: ...
