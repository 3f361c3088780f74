"""What one SIP knows about its next message to another SIP: the component promises of a chip.

Only PEs with a running kernel send off the chip, and only those whose IPCQ has a peer elsewhere. Everything else needs time
before it can: a launch has to reach a PE first, a packet has to reach the IO chiplet.
"""

from collections.abc import Mapping, Sequence

from sip_node.pdes.promises import Sender


class Outlook:
    """The senders of one SIP.

    `port_path_ps` gives, for every (cube, pe), the least time from the PE to the entrance of the links to other SIPs,
    `launch_path_ps` the least time from a launch that the IO_CPU has not stamped yet to a message. `forwards` says
    whether messages between two other SIPs pass through this one.
    """

    def __init__(self, port_path_ps: Mapping[tuple[int, int], int], launch_path_ps: int, *, forwards: bool) -> None:
        self._port_path_ps = port_path_ps
        self._forwards = forwards
        self._launches = Sender(launch_path_ps)
        self._in_transit = Sender(launch_path_ps)
        self._reaching: set[tuple[int, int]] = set()
        self._running: dict[tuple[int, int], Sender] = {}

    def reaches_out(self, pe: tuple[int, int]) -> None:
        """A PE has got queues to other SIPs."""
        self._reaching.add(pe)

    def launched(self, pes: Sequence[tuple[int, int]], start_ps: int) -> None:
        """A kernel will start on `pes` at `start_ps`, not earlier."""
        for pe in pes:
            if pe in self._reaching:
                self._running[pe] = Sender(self._port_path_ps[pe])
                self._running[pe].quiet_until(start_ps)

    def computing(self, pe: tuple[int, int], until_ps: int) -> None:
        """The kernel on a PE decides nothing before `until_ps`."""
        if pe in self._running:
            self._running[pe].quiet_until(until_ps)

    def ended(self, pe: tuple[int, int]) -> None:
        """The kernel on a PE has ended."""
        self._running.pop(pe, None)

    def departed(self, entrance_ps: int) -> None:
        """A packet for another SIP is on its way and reaches the entrance of the link not before `entrance_ps`."""
        self._in_transit.departed(entrance_ps)

    def entered(self, entrance_ps: int) -> None:
        """That packet has been posted."""
        self._in_transit.entered(entrance_ps)

    def earliest_send_ps(self, base_ps: int) -> int:
        """No message leaves this SIP earlier, if no event of its LP is executed before `base_ps`."""
        if self._forwards:
            return base_ps
        bounds = [sender.earliest_send_ps(base_ps) for sender in self._running.values()]
        return min(self._launches.earliest_send_ps(base_ps), self._in_transit.earliest_send_ps(base_ps), *bounds)
