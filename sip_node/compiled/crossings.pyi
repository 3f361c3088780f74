"""Packets from SIP to SIP in C, as Python sees them."""

from collections.abc import Callable, Sequence
from typing import Any

from sip_node.compiled.calendar import Calendar
from sip_node.compiled.hops import Endpoint
from sip_node.compiled.link_egress import LinkEgress, LinkEnd

class Inbox(LinkEnd):
    received: int
    def __init__(self, engine: Calendar, receive: Callable[[Any, int, int], None]) -> None: ...
    def put(self, time_ps: int, source: int, seq: int, tail_ps: int, packet: Any) -> None: ...

class Crossings(Endpoint):
    def bind(
        self,
        engine: Calendar,
        fabric: Any,
        io_noc: int,
        sip: int,
        send_bounds: Any,
        egress_to: Sequence[LinkEgress | None],
        switch_port: Any,
        inbox: Inbox,
    ) -> None: ...
    def arrive(self, head_ps: int, source: int, seq: int, tail_ps: int, packet: Any) -> None: ...
    def receive(self, packet: Any, tail_ps: int, source: int) -> None: ...
