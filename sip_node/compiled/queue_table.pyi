"""The queue pairs of a table of a PE, in C, as Python sees them."""

from typing import Any

from sip_node.compiled.calendar import Calendar

class QueuesByDirection:
    def bind(self, engine: Calendar, context: Any, credit_kind: Any) -> None: ...
