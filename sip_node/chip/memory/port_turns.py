"""The turns of messages at a port that others reserve directly, as the DMA does at its TCM.

Of each message at most one packet has reserved the port and not begun; the next one reserves it
when that begins. So a message with many packets waits for one packet of each other message, and for
what the DMA has reserved, between two of its own.
"""

from collections import deque
from typing import Any

from sip_node.chip.fabric.server import FifoServer
from sip_node.chip.memory.access import Access, AccessService, MessageKey
from sip_node.kernel.int_array import IntArray
from sip_node.pdes.engine import Engine

_NEXT = 0


class PortTurns(AccessService):
    """Serves the packets of the fabric at a port."""

    def __init__(self, engine: Engine, port: FifoServer) -> None:
        self.join(engine)
        self._port = port
        # The port as the one channel of a memory.
        self._channels = IntArray()
        self._channels.append(0)
        # The packets behind a packet that has reserved the port and not begun; None for none.
        self._later: dict[MessageKey, deque[Access] | None] = {}

    def submit(self, access: Access) -> None:
        """Reserve the port for an access, or let it wait for its turn."""
        access.submitted_ps = self.engine.now_ps
        if access.message not in self._later:
            self._reserve(access, None)
            return
        behind = self._later[access.message]
        if behind is None:
            self._later[access.message] = deque([access])
        else:
            behind.append(access)

    def proceed(self, step: int, subject: Any) -> None:  # noqa: ARG002 - it has one step
        """The first access of the message `subject` has begun."""
        behind = self._later.pop(subject)
        if behind:
            self._reserve(behind.popleft(), behind)

    def _reserve(self, access: Access, behind: deque[Access] | None) -> None:
        """Reserve the port for accesses of one message until one of them has to wait."""
        port, now_ps = self._port, self.engine.now_ps
        while True:
            train = access.train
            if train is not None and port.bins is not None:
                port.bins.waited_ps = now_ps - access.submitted_ps
            start_ps = port.serve(now_ps, access.tail_ps, access.nbytes)
            end_ps = port.tail_ps
            if train is not None:
                train.at_channels(self._channels, access.submitted_ps, start_ps, end_ps)
            if start_ps > now_ps:
                self._later[access.message] = behind
                self.later(start_ps, _NEXT, access.message)
                access.begun(start_ps, start_ps, end_ps)
                return
            access.begun(start_ps, start_ps, end_ps)
            if not behind:
                return
            access = behind.popleft()
