"""The sending end of a link between SIPs in C, as Python sees it."""

from typing import Any

from sip_node.compiled.calendar import Actor, Calendar
from sip_node.compiled.op_log import OpLog

class LinkEnd(Actor):
    def arrive(self, head_ps: int, source: int, seq: int, tail_ps: int, packet: Any) -> None: ...

class LinkEgress:
    port: Any
    latency_ps: int
    sent: int
    def __init__(
        self, engine: Calendar, log: OpLog, source: int, port: Any, latency_ps: int
    ) -> None: ...
    def connect(self, end: Any) -> None: ...
    def cross(self, packet: Any, tail_ps: int) -> int: ...
    def notify(self, packet: Any) -> None: ...
