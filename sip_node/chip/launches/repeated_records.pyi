"""The records of a launch, as Python sees them."""

from collections.abc import Sequence
from typing import Any

from runtime.core.trace import Operand, OpRecord
from runtime.language.value import Array

class RepeatedRecords:
    def __init__(
        self,
        log: Any,
        records: Sequence[OpRecord],
        waits: Sequence[object],
        base_ps: int,
        steps: int,
    ) -> None: ...
    def __len__(self) -> int: ...
    def relocate(self, index: int, address: int, inputs: tuple[Operand | float, ...]) -> None: ...
    def number_flows(self, later: dict[tuple[int, int], int]) -> None: ...
    def enter(
        self, first: int, behind: int, base_ps: int, steps: int, checksums: Array | None
    ) -> None: ...
