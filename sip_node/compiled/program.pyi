"""Programs that block on simulated time, in C, as Python sees them."""

from collections.abc import Callable
from contextvars import Context
from types import FrameType
from typing import Any

from sip_node.compiled.completion import Completion, Continuation

class Program(Continuation):
    finished: Completion
    def __init__(
        self,
        main: Callable[[], object],
        stacks: Any,
        context: Context | None = None,
        clock: Any = None,
    ) -> None: ...
    @property
    def frame(self) -> FrameType | None: ...
    def start(self) -> None: ...
    def call(self, start: Callable[..., Any], args: tuple[object, ...]) -> None: ...
    def wait(self, start: Callable[..., Any], *args: object) -> Any: ...
    def sleep(self) -> Any: ...
