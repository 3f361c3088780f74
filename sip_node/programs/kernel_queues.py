"""The queue table that a kernel sends and receives through, with its checks.

A direction must be installed, with a ring at the end that the operation uses. The queues of a
collective are reserved for it while it runs: a kernel of the user that sends or receives there
would take its slots.
"""

from runtime.core.errors import nearest
from runtime.core.program_grid import ALONE
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.pe.queue_table import QueueState, QueueTable
from sip_node.programs.kernel_faults import KernelFaults


class KernelQueues:
    """The queues of `table` by direction; `KernelError` for what the kernel may not use."""

    def __init__(self, table: QueueTable, launch: PeLaunch, faults: KernelFaults) -> None:
        self.table, self._faults = table, faults
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
