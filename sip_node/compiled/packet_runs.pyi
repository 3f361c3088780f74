"""Packets that wait for a message in C, as Python sees them."""

from typing import Any

from sip_node.compiled.link_egress import LinkEnd

class Runs(LinkEnd):
    source: int
    def __init__(self, source: int, target: int, message: type[Any], limit: int) -> None: ...
    def take(self) -> list[tuple[int, Any]]: ...
