"""The turns of messages at a port in C, as Python sees them."""

from typing import Any

from sip_node.compiled.calendar import Calendar
from sip_node.compiled.memory_queue import AccessService

class PortTurns(AccessService):
    def __init__(self, engine: Calendar, port: Any) -> None: ...
