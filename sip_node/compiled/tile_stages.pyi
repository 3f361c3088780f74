"""The stages of a product's steps in C, as Python sees them."""

from collections.abc import Callable, Sequence
from typing import Any

from runtime.core.coordinates import PeCoordinates
from runtime.core.trace import OpRecord
from sip_node.compiled.calendar import Actor, Calendar

class Slots:
    def __init__(self, count: int) -> None: ...
    @property
    def available(self) -> bool: ...
    @property
    def unused(self) -> bool: ...
    def when_freed(self, callback: Callable[[], None]) -> None: ...
    def take(self) -> int: ...
    def free(self, index: int) -> None: ...

class Token:
    def __init__(
        self,
        gemm: Any,
        tile: Any,
        shape: Any,
        sources: tuple[Any, Any],
        output: Any,
        route: tuple[Any, ...],
        submitted_ps: int,
        buffer: int,
    ) -> None: ...
    def advance(self) -> None: ...

class LoadStage:
    def __init__(
        self,
        engine: Calendar,
        read: Callable[[Any, Any], Any],
        addresses: Sequence[tuple[int, int]],
        staged: type,
        data_of: Callable[[Any, Any, bytes], Any],
        read_pieces: Callable[[Any, Any, Callable[[Any], None]], None],
    ) -> None: ...
    def accept(self, token: Token) -> None: ...

class FetchStage(Actor):
    server: Any
    records: int
    def __init__(
        self,
        engine: Calendar,
        server: Any,
        record: Callable[[OpRecord], None],
        at: PeCoordinates,
        registers: Any,
        buffers: Slots,
    ) -> None: ...
    def accept(self, token: Token) -> None: ...

class GemmStage(Actor):
    free_ps: int
    busy_ps: int
    tiles: int
    macs: int
    stall_dma_ps: int
    stall_fetch_ps: int
    stall_store_ps: int
    def __init__(
        self,
        engine: Calendar,
        record: Callable[[OpRecord], None],
        at: PeCoordinates,
        registers: Any,
    ) -> None: ...
    def accept(self, token: Token) -> None: ...
