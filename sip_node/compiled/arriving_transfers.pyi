"""Transfers that arrive from other LPs in C, as Python sees them."""

from typing import Any

class Partial:
    transfer: Any
    nbytes: int
    def __init__(self, transfer: Any) -> None: ...

class Arrivals:
    def bind(self, begun: dict[Any, Any], numbers: dict[Any, int]) -> None: ...
    def receive(self, message: Any, boundary: Any) -> None: ...
