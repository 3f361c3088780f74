"""Finds a cycle of full buffers in the networks of all SIPs.

A vertex is a buffer, an edge leads from a buffer to one that its first packet waits for. In a run
in which no event is left none of them moves, so every cycle is a deadlock of the network: its cause
are routes whose channels depend on each other in a cycle.
"""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from runtime.core.errors import NetworkDeadlock
from runtime.wire.reports import SipReport


def network_deadlock(reports: Sequence[SipReport]) -> NetworkDeadlock | None:
    """The error of a run whose network is in a deadlock, from the reports of all SIPs."""
    packets: dict[str, str] = {}
    waits_for: dict[str, dict[str, None]] = {}
    for stalled in (stalled for report in reports for stalled in report.stalled):
        packets.setdefault(stalled.buffer, stalled.packet)
        # Dictionaries, not sets: the order of the reports decides which of several cycles is shown.
        waits_for.setdefault(stalled.buffer, {})[stalled.waits_for] = None
    try:
        TopologicalSorter(waits_for).prepare()
    except CycleError as error:
        return NetworkDeadlock(
            max(report.time_ps for report in reports), _cycle(error.args[1], packets)
        )
    return None


def _cycle(path: Sequence[str], packets: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """The buffers of a cycle in the order of waiting, from the least name on."""
    # The sorter lists a cycle in the order of its edges backwards, with its first vertex twice.
    buffers = path[:0:-1]
    first = buffers.index(min(buffers))
    return tuple((name, packets[name]) for name in (*buffers[first:], *buffers[:first]))
