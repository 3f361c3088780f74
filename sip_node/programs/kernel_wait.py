"""The wait state of a kernel: the peer that it waits for, or the time before which it sleeps.

The peer goes into the wait-for graph when a run hangs: PE, operation, direction, start of the wait,
source line. The time is a component promise of the conservative synchronisation: while engines
compute, the kernel sends nothing to other SIPs, so these may simulate up to that time.
"""

from msgspec.structs import replace

from runtime.language.caller import kernel_line
from runtime.wire.reports import BlockedPe
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.pe.pe import Pe
from sip_node.programs.kernel_queues import KernelQueues
from sip_node.programs.kernel_receive import Receives
from sip_node.programs.program import Program


class KernelWait:
    """What one kernel waits for."""

    def __init__(
        self, pe: Pe, launch: PeLaunch, program: Program, queues: KernelQueues, receives: Receives
    ) -> None:
        self._chip, self._coordinates = pe.chip, pe.coordinates
        self._launch, self._program = launch, program
        self._queues, self._receives = queues, receives
        self._current: BlockedPe | None = None

    def on_peer(self, operation: str, direction: str | None, line: str = "") -> BlockedPe:
        """Describe a wait that begins now; `line` is its source line where it is known already."""
        pair = self._queues.check_peer(operation, direction)
        return BlockedPe(
            sip=self._coordinates.sip,
            cube=self._coordinates.cube,
            pe=self._coordinates.pe,
            kernel=self._launch.name,
            operation=operation,
            direction=direction or "any",
            peer=None if pair is None else pair.peer,
            since_ps=self._chip.engine.now_ps,
            line=line,
            call=self._launch.call,
        )

    def begin(self, wait: BlockedPe | None) -> None:
        """The kernel waits from now on; None where it waits for no peer."""
        self._current = wait

    def end(self) -> None:
        """The kernel goes on."""
        self._current = None

    def until(self, time_ps: int) -> None:
        """The kernel does not go on before `time_ps`: promise the other SIPs no message before."""
        # A receive under way returns credits, perhaps to another SIP, while the kernel sleeps.
        if not self._receives.outstanding:
            pe = (self._coordinates.cube, self._coordinates.pe)
            self._chip.send_bounds.computing(pe, time_ps, self._launch.thread)

    def blocked(self) -> BlockedPe | None:
        """The wait for a peer, if there is one, with its source line."""
        if self._current is None:
            return None
        # Found when it is needed: a kernel sends many slots and waits for few of them.
        line = self._current.line or kernel_line(self._program.frame)
        if self._launch.call:
            # The lines of a collective's kernel are not the user's, so name the call as well.
            line = f"{line}, called at {self._launch.line}"
        return replace(self._current, line=line)
