"""The rows of the steps of programs, in C, as Python sees them."""

from typing import Any

class StepRows:
    def __init__(self, recorder: Any) -> None: ...
    def flush(self) -> None: ...
