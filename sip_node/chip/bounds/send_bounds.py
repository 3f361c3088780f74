"""Send bounds: the earliest time of the next message from one SIP to each other SIP.

They are the component promises of a chip. Only PEs with a running kernel or a posted transfer send
off the chip, and only to the SIPs to which the kernel's queues lead, or to the SIP at the other end
of the transfer. Everything else takes time first: a launch has to be submitted and to reach a PE
(`command_bounds.py`), a packet has to reach the IO chiplet. A message which this SIP only forwards
has a bound here from the time at which it is put into the inbox; before that the promises of its
channel bound it.
"""

from collections.abc import Callable, Collection, Mapping

from msgspec import Struct

from runtime.core.requests import HardwareThread, KernelLaunchMsg
from runtime.core.simtime import NEVER_PS
from sip_node.chip.bounds.command_bounds import AnswerLink, CommandBounds, Until
from sip_node.chip.fabric.approach import Approach, Lookout
from sip_node.kernel.exact import later_ps
from sip_node.pdes.sender import Sender

Pe = tuple[int, int]


class _PostedTransfer(Struct):
    """A send or receive that is posted, the SIP at its other end, and the PEs it is open on."""

    sender: Sender
    target: int
    open_pes: int
    approaches: Collection[Approach | None]


class _Running(Struct):
    """A kernel on a PE, the SIPs that it can send to, and its path to the port.

    It goes on neither before `quiet_ps` nor before `until()`.
    """

    targets: Collection[int]
    path_ps: int
    quiet_ps: int
    approach: Approach | None
    until: Until | None = None


class SendBounds:
    """The senders of one SIP.

    `port_path_ps` gives, for every (cube, pe), the least time from the PE to the entrance of the
    links to other SIPs, `commands` bounds the launches that the IO_CPU has not stamped yet. With
    `answers`, memories here reply to requests of other SIPs, which may arrive at any time.
    """

    def __init__(
        self, port_path_ps: Mapping[Pe, int], commands: CommandBounds, *, answers: bool
    ) -> None:
        self._port_path_ps, self.commands, self._answers = port_path_ps, commands, answers
        self._leaving: Collection[int] | None = None
        self._reach: dict[tuple[Pe, str], Collection[int]] = {}
        self._sending: dict[tuple[Pe, HardwareThread], _Running] = {}
        self._command_of: dict[tuple[Pe, HardwareThread], int] = {}
        self._transfers: dict[str, _PostedTransfer] = {}
        self.in_flight: dict[int, Sender] = {}
        """The packets in flight to each target, by target; compiled parts note them here."""
        self._lookout: Lookout | None = None
        self._approach: Callable[[Pe], Approach | None] = lambda _: None

        self._answers_of: Mapping[int, AnswerLink] = {}

    def only_to(self, targets: Collection[int]) -> None:
        """Bounds are of interest for these targets: messages to others do not leave the LP.

        Called before the first queue table is installed.
        """
        self._leaving = targets

    def look_out(
        self,
        lookout: Lookout,
        approach: Callable[[Pe], Approach | None],
        answers_of: Mapping[int, AnswerLink],
    ) -> None:
        """Promise what `lookout` foresees.

        `approach` gives the last link of the packets of a PE, `answers_of` the last link that the
        answers of a cube share with them.
        """
        self._lookout, self._approach, self._answers_of = lookout, approach, answers_of

    def reaches(self, pe: Pe, table: str, sips: Collection[int]) -> None:
        """A queue table was installed on a PE; its queues lead to `sips`, without the own SIP."""
        self._reach[pe, table] = [sip for sip in sips if self._leaves(sip)]

    def stamped(self, command: int, launch: KernelLaunchMsg, start_ps: int) -> None:
        """The IO_CPU starts the kernel of a launch at `start_ps`, not earlier.

        Its queue table is installed. A transfer may send notices, data and credits at any time from
        then on, until it has `transferred` on all of its PEs.
        """
        self.commands.stamped(command, start_ps, launch)
        if launch.transfer is None:
            self._launched(command, launch, start_ps)
            return
        # One sender for all PEs, with the shortest path: a rank may have posted many transfers.
        sender = Sender(min(self._port_path_ps[pe] for pe in launch.pes))
        sender.quiet_until(start_ps)
        self._transfers[launch.call] = _PostedTransfer(
            sender, launch.transfer.peer, len(launch.pes), set(map(self._approach, launch.pes))
        )

    def repeated(self, command: int, launch: KernelLaunchMsg, start_ps: int, end_ps: int) -> None:
        """A launch whose kernels send nothing to other LPs starts at `start_ps` and is complete at
        the IO_CPU at `end_ps`.

        Its kernels are not counted as running: the links that their answers pass are reserved by
        these answers already, and no answer comes behind itself.
        """
        self.commands.stamped(command, start_ps, launch)
        self.commands.complete_at(command, end_ps)

    def waiting(self, pe: Pe, thread: HardwareThread, until: Until, *, sends: bool) -> None:
        """The kernel on a thread of a PE does not go on before `until()`; other threads may.

        Meanwhile it sends nothing, unless it `sends` credits for what it receives.
        """
        key: tuple[Pe, HardwareThread] = (pe, thread)
        until_ps = until()
        self.commands.not_before(self._command_of[key], until_ps, until)
        # A kernel that copies slots returns their credits while it waits, so its wait bounds
        # nothing.
        running = None if sends else self._sending.get(key)
        if running is not None:
            running.quiet_ps, running.until = max(running.quiet_ps, until_ps), until

    def ended(self, pe: Pe, thread: HardwareThread) -> None:
        """The kernel on a thread of a PE has ended."""
        key: tuple[Pe, HardwareThread] = (pe, thread)
        command = self._command_of.pop(key)
        # Of an LP without peers, both are empty: its kernels bound no promise.
        if self._answers_of and (answers := self._answers_of.get(pe[0])) is not None:
            self.commands.ended(command, answers)
        if self._sending:
            self._sending.pop(key, None)

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
        if target not in self.in_flight:
            # A sender that never decides to send: only its packets in flight count.
            self.in_flight[target] = Sender(NEVER_PS)
        self.in_flight[target].departed(entrance_ps)

    def entered(self, target: int, entrance_ps: int) -> None:
        """A packet that `departed` has noted has been posted."""
        self.in_flight[target].entered(entrance_ps)

    def earliest_send_ps(self, base_ps: int) -> tuple[int, Mapping[int, int]]:
        """No message leaves this SIP earlier, if no event of its LP is executed before `base_ps`.

        The first bound holds for all launches to come and any target; the others, by target, for
        running kernels, for posted transfers and for packets in flight, except those of
        `foresee`.
        """
        known = {
            target: bound_ps
            for target, sender in self.in_flight.items()
            # Most often nothing is in flight to a target.
            if (bound_ps := sender.earliest_send_ps(base_ps)) < NEVER_PS and self._leaves(target)
        }
        # Of several kernels that reach a target, the earliest counts.
        for running in self._sending.values():
            bound_ps = _earliest_ps(running, base_ps)
            for target in running.targets:
                known[target] = min(bound_ps, known.get(target, bound_ps))
        for transfer in self._transfers.values():
            if not self._leaves(transfer.target):
                continue
            bound_ps = transfer.sender.earliest_send_ps(base_ps)
            # Each packet of the transfer passes the last link of its PE, of which the first to be
            # free counts.
            gates = [each.earliest_ps(base_ps) if each else base_ps for each in transfer.approaches]
            bound_ps = max(bound_ps, min(gates))
            known[transfer.target] = min(bound_ps, known.get(transfer.target, bound_ps))
        # With `answers` a request may arrive at any time, and its reply may leave in that event.
        launch_ps = base_ps if self._answers else self.commands.earliest_message_ps(base_ps)
        if self._lookout is not None:
            for target, bound_ps in self._lookout.bounds(base_ps):
                if self._leaves(target):
                    known[target] = min(bound_ps, known.get(target, bound_ps))
        return launch_ps, known

    def _leaves(self, target: int) -> bool:
        return self._leaving is None or target in self._leaving

    def foresee(self, before_ps: int) -> int:
        """Let the packets that leave before `before_ps` enter their messages.

        Nothing else leaves before that. Returns a bound on the others that are known.
        """
        return NEVER_PS if self._lookout is None else self._lookout.foresee(before_ps)

    def _launched(self, command: int, launch: KernelLaunchMsg, start_ps: int) -> None:
        thread, queues = launch.thread, launch.queues
        self._command_of.update(dict.fromkeys([(pe, thread) for pe in launch.pes], command))
        for pe in launch.pes if self._answers_of else ():
            if (answers := self._answers_of.get(pe[0])) is not None:
                self.commands.running(command, answers)
        for pe in launch.pes if self._reach else ():
            # A kernel without queues to other SIPs never bounds a promise.
            if targets := self._reach.get((pe, queues)):
                key = pe, thread
                # All PEs of a launch start at one time, so none sends before it.
                self._sending[key] = _Running(
                    targets, self._port_path_ps[pe], start_ps, self._approach(pe)
                )


def _earliest_ps(running: _Running, base_ps: int) -> int:
    """The earliest message of a kernel: when it goes on, and then the path to the port."""
    send_ps = running.quiet_ps
    if send_ps <= base_ps and running.until is not None:
        # Progress may have moved the end of what the kernel waits for; it never comes earlier.
        send_ps = running.quiet_ps = max(send_ps, running.until())
    bound_ps = later_ps(max(base_ps, send_ps), running.path_ps)
    if running.approach is None:
        return bound_ps
    # A kernel may wait for products, and meanwhile its link is free.
    gate_ps = running.approach.earliest_ps(base_ps)
    return max(bound_ps, gate_ps)
