"""Send bounds: the earliest time of the next message from one SIP to each other SIP.

They are the component promises of a chip. Only PEs with a running kernel or a posted transfer send
off the chip, and only to the SIPs to which the kernel's queues lead, or to the SIP at the other end
of the transfer. Everything else takes time first: a launch has to reach a PE, a packet has to reach
the IO chiplet. A message which this SIP only forwards has a bound here from the time at which it is
put into the inbox; before that the promises of its channel bound it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from runtime.core.requests import HardwareThread
from runtime.core.simtime import NEVER_PS
from sip_node.pdes.sender import Sender

Pe = tuple[int, int]


@dataclass(slots=True)
class _PostedTransfer:
    """A send or receive that is posted, the SIP at its other end, and the PEs it is open on."""

    sender: Sender
    target: int
    open_pes: int


@dataclass(frozen=True, slots=True)
class _Running:
    """A kernel on a PE and the SIPs that it can send to."""

    sender: Sender
    targets: Collection[int]


class SendBounds:
    """The senders of one SIP.

    `port_path_ps` gives, for every (cube, pe), the least time from the PE to the entrance of the
    links to other SIPs, `launch_path_ps` the least time from a launch that the IO_CPU has not
    stamped yet to a message. With `answers`, memories here reply to requests of other SIPs, which
    may arrive at any time.
    """

    def __init__(
        self, port_path_ps: Mapping[Pe, int], launch_path_ps: int, *, answers: bool
    ) -> None:
        self._port_path_ps = port_path_ps
        # With `answers` a request may arrive at any time, and its reply may leave in that event.
        self._launches = Sender(0 if answers else launch_path_ps)
        self._reach: dict[tuple[Pe, str], Collection[int]] = {}
        self._running: dict[tuple[Pe, HardwareThread], _Running] = {}
        self._transfers: dict[str, _PostedTransfer] = {}
        self._in_flight: dict[int, Sender] = {}

    def reaches(self, pe: Pe, table: str, sips: Collection[int]) -> None:
        """A queue table was installed on a PE; its queues lead to `sips`, without the own SIP."""
        self._reach[pe, table] = sips

    def launched(
        self, pes: Sequence[Pe], start_ps: int, thread: HardwareThread, table: str
    ) -> None:
        """A kernel starts on a thread of `pes` at `start_ps`, not earlier, with a queue table.

        The table is installed. A kernel without a table cannot send off the chip.
        """
        for pe in pes:
            targets = self._reach.get((pe, table))
            # A kernel without queues to other SIPs never bounds a promise.
            if targets:
                sender = Sender(self._port_path_ps[pe])
                # All PEs of a launch start at one time, so none sends before it.
                sender.quiet_until(start_ps)
                self._running[pe, thread] = _Running(sender, targets)

    def computing(self, pe: Pe, until_ps: int, thread: HardwareThread) -> None:
        """The kernel on a thread of a PE sends nothing before `until_ps`; other threads may."""
        if (pe, thread) in self._running:
            self._running[pe, thread].sender.quiet_until(until_ps)

    def ended(self, pe: Pe, thread: HardwareThread) -> None:
        """The kernel on a thread of a PE has ended."""
        self._running.pop((pe, thread), None)

    def posted(self, call: str, pes: Sequence[Pe], start_ps: int, target: int) -> None:
        """The transfer `call` with SIP `target` starts on `pes` at `start_ps`, not earlier.

        From then on notices, data and credits may leave at any time until it has `transferred` on
        all of them.
        """
        # One sender for all PEs, with the shortest path: a rank may have posted many transfers.
        sender = Sender(min(self._port_path_ps[pe] for pe in pes))
        sender.quiet_until(start_ps)
        self._transfers[call] = _PostedTransfer(sender, target, len(pes))

    def transferred(self, call: str) -> None:
        """The transfer `call` has ended on one of its PEs."""
        transfer = self._transfers[call]
        transfer.open_pes -= 1
        if not transfer.open_pes:
            del self._transfers[call]

    def departed(self, target: int, entrance_ps: int) -> None:
        """A packet for SIP `target` is in flight to a link, and there at `entrance_ps` or later.

        The packet is of this SIP, or forwarded.
        """
        if target not in self._in_flight:
            # A sender that never decides to send: only its packets in flight count.
            self._in_flight[target] = Sender(NEVER_PS)
        self._in_flight[target].departed(entrance_ps)

    def entered(self, target: int, entrance_ps: int) -> None:
        """That packet has been posted."""
        self._in_flight[target].entered(entrance_ps)

    def earliest_send_ps(self, base_ps: int) -> tuple[int, Mapping[int, int]]:
        """No message leaves this SIP earlier, if no event of its LP is executed before `base_ps`.

        The first bound holds for all launches to come and any target; the others, by target, for
        running kernels, for posted transfers and for packets in flight.
        """
        known = {
            target: sender.earliest_send_ps(base_ps) for target, sender in self._in_flight.items()
        }
        # Of several kernels that reach a target, the earliest counts.
        for running in self._running.values():
            bound_ps = running.sender.earliest_send_ps(base_ps)
            for target in running.targets:
                known[target] = min(bound_ps, known.get(target, bound_ps))
        for transfer in self._transfers.values():
            bound_ps = transfer.sender.earliest_send_ps(base_ps)
            known[transfer.target] = min(bound_ps, known.get(transfer.target, bound_ps))
        return self._launches.earliest_send_ps(base_ps), known
