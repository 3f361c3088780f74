"""The queues of a kernel with their checks, and its wait for a peer or for a time.

A direction must be installed, with a ring at the end that the operation uses. The queues of a
collective are reserved for it while it runs: a kernel of the user that sends or receives there
would take its slots.

The peer goes into the wait-for graph when a run hangs: PE, operation, direction, start of the wait,
source line. The time is a component promise of the conservative synchronisation: while engines
compute, the kernel sends nothing to other SIPs, so these may simulate up to that time.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import nearest
from runtime.core.program_grid import ALONE
from runtime.language.caller import kernel_line
from runtime.wire.reports import BlockedPe
from sip_node.chip.bounds.command_bounds import Until
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.pe.pe import Pe
from sip_node.chip.pe.queue_table import QueueState, QueueTable
from sip_node.pdes.engine import Engine
from sip_node.programs.kernel_faults import KernelFaults
from sip_node.programs.kernel_receive import Receives
from sip_node.programs.program import AnyProgram


class KernelQueues:
    """The queues of `table` by direction; `KernelError` for what the kernel may not use."""

    def __init__(
        self, table: QueueTable, launch: PeLaunch, faults: KernelFaults, engine: Engine
    ) -> None:
        self.table, self._faults, self._engine = table, faults, engine
        self.excluded = launch.thread == "kernels"
        """Whether the queues of a collective are refused to the kernel while it runs."""
        self._in_grid = launch.programs is not None
        # Kept after the kernel has ended: a law that is broken at the end names the last call.
        table.call = launch.call or table.call

    def outgoing(self, direction: str) -> QueueState:
        """The queue that sends in `direction`."""
        queue = self._queue(direction)
        if queue.pair.tx_base is None:
            raise self._faults.error(
                f"send to {direction}: the queues {self.table.name!r} only receive from there"
            )
        return queue

    def check_incoming(self, direction: str | None) -> None:
        """Check that slots can arrive from `direction`; None stands for any."""
        if direction is not None and self._queue(direction).pair.rx_base is None:
            raise self._faults.error(
                f"recv from {direction}: the queues {self.table.name!r} only send there"
            )

    @property
    def reserved(self) -> bool:
        """Whether a collective has the queues to itself, and the kernel is not its own."""
        return self.excluded and bool(self.table.user)

    def check_peer(self, operation: str, direction: str | None) -> None:
        """Check that an operation may use the queue in `direction`, None for any, now."""
        if direction is not None:
            self._queue(direction)
        elif self._in_grid:
            raise self._faults.error(f"recv from any direction: {ALONE}")
        elif not self.table.receiving:
            raise self._faults.error("recv from any direction: no queue is installed here")
        if self.reserved:
            raise self._faults.error(
                f"{operation} {direction or 'from any direction'}: the queues {self.table.name!r} "
                f"are in use by {self.table.user}, which was called with async_op=True: "
                "wait() for it first"
            )

    def on_peer(self, operation: str, direction: str | None, line: str = "") -> "PeerWait":
        """A wait that begins now; `KernelError` if the queues do not allow the operation."""
        self.check_peer(operation, direction)
        return PeerWait(operation, direction, self._engine.now_ps, line)

    def _queue(self, direction: str) -> QueueState:
        queue = self.table.queue(direction)
        if queue is None and self._in_grid:
            raise self._faults.error(f"no queue in direction {direction!r}: {ALONE}")
        if queue is None:
            known = self.table.directions
            raise self._faults.error(
                f"no queue in direction {direction!r} is installed here{nearest(direction, known)}"
            )
        return queue


class PeerWait(Struct, frozen=True):
    """A wait for the peer in `direction`, None for any; `line` is its source line if known."""

    operation: str
    direction: str | None
    since_ps: int
    line: str = ""


class WaitForPeer(Protocol):
    """The wait of a kernel for a peer: of its own, or of a message that it sends."""

    @property
    def operation(self) -> str:
        """The name of the operation that waits."""
        ...

    @property
    def direction(self) -> str | None:
        """The direction of the peer, None for any."""
        ...

    @property
    def since_ps(self) -> int:
        """The begin of the wait."""
        ...

    @property
    def line(self) -> str:
        """The source line of the operation, empty if it is not known."""
        ...


class KernelWait:
    """The wait of one kernel: `current` is the wait for a peer, if there is one.

    A message that waits for its credits stands for its wait. `receives` are those of a kernel that
    sends or receives, through the queues of `table`.
    """

    def __init__(self, pe: Pe, launch: PeLaunch, program: AnyProgram, table: QueueTable) -> None:
        self._chip, self._coordinates = pe.chip, pe.coordinates
        self._launch, self._program, self._table = launch, program, table
        self.receives: Receives | None = None
        self.current: WaitForPeer | None = None
        self._missing: Callable[[], tuple[str, PeCoordinates | None]] | None = None
        # Counted here, since a reference to the sends would be a cycle for each kernel.
        self.leaving = 0
        """Messages in the background that have slots left to send."""

    def begin_barrier(
        self, missing: Callable[[], tuple[str, PeCoordinates | None]], line: str = ""
    ) -> None:
        """The kernel waits in the barrier of its launch from now on, called at `line` if known.

        `missing` describes the PEs that have not called it, and returns the first that runs.
        """
        self._missing = missing
        self.begin(PeerWait("barrier", None, self._chip.engine.now_ps, line))

    def begin(self, wait: PeerWait | None) -> None:
        """The kernel waits from now on; None where it waits for no peer."""
        self.current = wait

    def end(self) -> None:
        """The kernel goes on."""
        self.current = self._missing = None

    def until(self, until: Until) -> None:
        """The kernel does not go on before `until()`: promise the other SIPs no message before."""
        # A receive under way returns credits, perhaps to another SIP, while the kernel sleeps.
        # A message in the background leaves meanwhile.
        receives, pe = self.receives, self._coordinates
        sends = receives is not None and (receives.outstanding > 0 or self.leaving > 0)
        if self._launch.transfer is None:
            self._chip.send_bounds.waiting(
                (pe.cube, pe.pe), self._launch.thread, until, sends=sends
            )

    @property
    def since_ps(self) -> int | None:
        """The begin of the wait for a peer, if there is one."""
        return None if self.current is None else self.current.since_ps

    def blocked(self, line: str = "") -> BlockedPe | None:
        """The wait for a peer, if there is one, with its source line: that of the call, if it is
        known, else `line`, the line of the command of a list, else that of the code that waits.
        """
        wait, own = self.current, self._coordinates
        if wait is None:
            return None
        # Described when it is needed: a kernel sends many slots and waits for few of them.
        line = wait.line or line or kernel_line(self._program.frame)
        if self._launch.call:
            # The lines of a collective's kernel are not the user's, so name the call as well.
            line = f"{line}, called at {self._launch.line}"
        direction, peer = wait.direction or "any", None
        if self._missing is not None:
            direction, peer = self._missing()
        elif wait.direction is not None:
            peer = self._table.pair(wait.direction).peer
        return BlockedPe(
            sip=own.sip,
            cube=own.cube,
            pe=own.pe,
            kernel=self._launch.name,
            operation=wait.operation,
            direction=direction,
            peer=peer,
            since_ps=wait.since_ps,
            line=line,
            call=self._launch.call,
        )
