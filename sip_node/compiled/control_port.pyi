"""The control ports of CPUs in C, as Python sees them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sip_node.compiled.calendar import Calendar
from sip_node.compiled.hops import Endpoint

class ControlPort:
    def bind(
        self,
        engine: Calendar,
        fabric: Any,
        sip: int,
        node: int,
        control_bytes: int,
        kind: Any,
        done: Callable[[int, int], Any],
    ) -> None: ...
    def send(self, node: int, body: object, nbytes: int, tag: int = 0) -> None: ...
    def forward(self, command: Any, parts: Sequence[tuple[int, object, int]]) -> None: ...
    def answer(self, command: Any, done: Any) -> None: ...
    def answered(self, packet: Any) -> None: ...

class CommandSpread(Endpoint):
    def bind(self, engine: Calendar, port: ControlPort, nodes: Iterable[int]) -> None: ...
