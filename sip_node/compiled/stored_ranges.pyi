"""The stores of a launch in C, as Python sees them."""

from collections.abc import Callable
from typing import Any

class StoredRanges:
    def __init__(self, layout_of: Callable[[Any], Any], conflict: Callable[..., Any]) -> None: ...
    def add(self, block: Any, writer: Any) -> Any: ...
