"""The kernels of a PE in C, as Python sees them."""

from collections.abc import Callable
from typing import Any

from sip_node.chip.op_log import OpLog
from sip_node.compiled.calendar import Calendar
from sip_node.compiled.control_port import ControlPort
from sip_node.compiled.hops import Endpoint

class KernelRuns(Endpoint):
    def bind(
        self,
        engine: Calendar,
        port: ControlPort,
        log: OpLog,
        launch: type,
        start_kernel: Callable[[Any, Any], Any],
        send_bounds: Any,
        coordinates: Any,
        running: dict[Any, Any],
    ) -> None: ...
