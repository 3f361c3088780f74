"""The event engine on the compiled calendar; see `sip_node.pdes.engine` for what it promises."""

import simpy

from sip_node.compiled.calendar import Calendar


class Engine(Calendar, simpy.Environment):
    """The engine of `ReferenceEngine`: a SimPy environment, whose calls are in a heap in C."""

    def __init__(self) -> None:
        super().__init__(initial_time=0)
        # One counter for both queues gives events at equal time and priority one order.
        self._eid = self.ids
        self.share(self._queue)
