"""The slots of messages that a kernel receives, in C, as Python sees them."""

from collections.abc import Sequence
from typing import Any

from sip_node.chip.completion import Completion
from sip_node.compiled.calendar import Calendar
from sip_node.compiled.queue_table import QueuesByDirection

class ReceivedMessage:
    source: str
    step: int
    kept: int
    @property
    def direction(self) -> str | None: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def targets(self) -> Sequence[Any]: ...
    @property
    def line(self) -> str: ...
    @property
    def in_tcm(self) -> bool: ...
    @property
    def in_place(self) -> bool: ...
    @property
    def done(self) -> Completion[Any]: ...
    def __init__(
        self,
        *,
        direction: str | None,
        dtype: Any,
        targets: Sequence[Any],
        line: str,
        in_tcm: bool,
        in_place: bool = False,
    ) -> None: ...
    def enter(self, state: int) -> None: ...

class SlotReceives:
    def bind(
        self,
        engine: Calendar,
        dma: Any,
        queues: QueuesByDirection,
        issue_ps: int,
        call: str,
        trace: Any,
        by_call: bool,
        functions: Any,
    ) -> None: ...
