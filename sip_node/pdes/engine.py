"""The event engine of one LP: a SimPy environment in integer picoseconds, with plain calls.

Most events of a chip only call a function at a time: a packet arrives at its next link, a channel
falls free. Such a call has SimPy's order (time, priority, order of scheduling), without the event
object around it: measured 1.34 times the events per second (ADR 6). Processes, timeouts and stores
work as in any SimPy environment; a test guards the private attributes of SimPy that this needs (ADR
13).
"""

import simpy

from sip_node.kernel.calendar import Calendar


class Engine(Calendar, simpy.Environment):
    """The clock and the events that all components of an LP share.

    Nothing in it depends on the number of SIPs in the LP.
    """
