"""Records that are kept to be entered again, as Python sees them."""

from array import array
from collections.abc import Mapping
from typing import Any

from runtime.core.launch_numbers import NumberFormula
from runtime.language.value import Array

class KeptRecords:
    begin_ps: int
    size: int
    is_full: bool
    parts: int
    numbers: Mapping[tuple[int, int, int], tuple[int, int, NumberFormula, array[int]]]

    def __init__(
        self, begin_ps: int, first_step: int, most_bytes: int, *, has_waits: bool
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def trim(self) -> None: ...
    def first_end_ps(self, engine: str) -> int: ...
    def move(self, distances: tuple[int, ...]) -> None: ...
    def set_number(self, index: int, place: int, number: float) -> None: ...
    def number_flows(self, later: dict[tuple[int, int], int]) -> None: ...
    def enter(
        self,
        log: Any,
        first: int,
        behind: int,
        begin_ps: int,
        steps: int,
        checksums: Array | None,
    ) -> None: ...
