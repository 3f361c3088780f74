"""The slots of messages that a kernel sends, in C, as Python sees them."""

from collections.abc import Callable
from typing import Any

from sip_node.chip.completion import Completion
from sip_node.compiled.calendar import Calendar
from sip_node.compiled.queue_state import QueueState

class SentMessage:
    paused: Completion[Any]
    @property
    def nbytes(self) -> int: ...
    @property
    def sent(self) -> int: ...
    @property
    def queue(self) -> QueueState: ...
    @property
    def background(self) -> str: ...
    def __init__(
        self,
        queue: QueueState,
        block: Any,
        data: bytes,
        nbytes: int,
        paused: Completion[Any],
        background: str = "",
    ) -> None: ...

class SlotSends:
    def bind(
        self,
        engine: Calendar,
        issue_ps: int,
        wait: Any,
        dma: Any,
        queues: Any,
        call: str,
        trace: Any,
        part_of: Callable[[Any, int, int], Any],
        item_bytes: Callable[[str], int],
    ) -> None: ...
