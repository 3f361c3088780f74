"""The transaction queue of a memory in C, as Python sees it."""

from typing import Any

from sip_node.chip.memory.access import AccessService
from sip_node.compiled.calendar import Calendar

class AccessQueue(AccessService):
    def __init__(self, engine: Calendar, memory: Any) -> None: ...
    def hold(self) -> None: ...
    def resume(self) -> None: ...
