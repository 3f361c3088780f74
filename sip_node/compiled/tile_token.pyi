"""A step of a product in C, as Python sees it."""

from typing import Any

from runtime.core.trace import Operand
from runtime.model.tiles import TileSize

class Stage:
    def accept(self, token: Token) -> None: ...

class StepShape:
    size: TileSize
    step_ps: int
    macs: int
    accumulator: str
    output_bytes: int
    inputs: dict[Any, tuple[Operand, ...]]
    def __init__(
        self,
        *,
        size: TileSize,
        step_ps: int,
        macs: int,
        accumulator: str,
        output_bytes: int,
        inputs: dict[Any, tuple[Operand, ...]],
    ) -> None: ...

class OutputTile:
    shape: tuple[int, int]
    start: Any
    bias: Any
    target: Operand | None
    memory: list[Operand]
    accumulator: int | None
    address: int
    bias_row: int
    buffer: int
    data: Any
    def __init__(
        self,
        shape: tuple[int, int],
        start: Any,
        bias: Any,
        target: Operand | None,
        memory: list[Operand],
    ) -> None: ...
    def take_accumulator(self, registers: Any) -> None: ...
    def registers(self, dtype: str) -> Operand: ...

class Token:
    gemm: Any
    shape: Any
    sources: tuple[Any, Any]
    output: Any
    route: tuple[Any, ...]
    a: Any
    b: Any
    first: bool
    last: bool
    buffer: int
    passed: int
    loading: int
    registers: int
    index: int
    submitted_ps: int
    ready_ps: int
    open_ps: int
    turn_ps: int
    fetch_ps: int
    fetched_ps: int
    @property
    def tile(self) -> Any: ...
    def advance(self) -> None: ...
