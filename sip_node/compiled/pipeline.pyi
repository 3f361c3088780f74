"""The parts that the steps of a matrix product pass, as Python sees them."""

from collections.abc import Sequence
from typing import Any

class Pipeline:
    def __init__(
        self, composite: Any, source: Any, parts: Any, memory_nodes: Sequence[int]
    ) -> None: ...
