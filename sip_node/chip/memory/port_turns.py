"""The turns of messages at a port that others reserve directly, as the DMA does at its TCM.

Of each message at most one packet has reserved the port and not begun; the next one reserves it
when that begins. So a message with many packets waits for one packet of each other message, and for
what the DMA has reserved, between two of its own.
"""

from collections import deque
from typing import TYPE_CHECKING, Protocol

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.chip.memory.transaction_queue import Access, MessageKey
from sip_node.chip.time_bins import TimeBins
from sip_node.pdes.engine import Engine


class ReservedPort(Protocol):
    """A port with a calendar, as in `Server`; `bins` are its load over time."""

    bins: TimeBins | None

    def reserve(self, head_ps: int, tail_ps: int, nbytes: int) -> tuple[int, int]:
        """(start, tail) of a message that arrives from `head_ps` to `tail_ps`."""
        ...


class ReferencePortTurns:
    """Serves the packets of the fabric at a port."""

    def __init__(self, engine: Engine, port: ReservedPort) -> None:
        self._engine, self._port = engine, port
        # The packets behind a packet that has reserved the port and not begun.
        self._later: dict[MessageKey, deque[Access]] = {}

    def submit(self, access: Access) -> None:
        """Reserve the port for an access, or let it wait for its turn."""
        access.submitted_ps = self._engine.now_ps
        later = self._later.get(access.message)
        if later is None:
            self._reserve(deque([access]))
        else:
            later.append(access)

    def _reserve(self, accesses: deque[Access]) -> None:
        """Reserve the port for accesses of one message until one of them has to wait."""
        while accesses:
            access, now_ps = accesses.popleft(), self._engine.now_ps
            train, bins = access.train, self._port.bins
            if train is not None and bins is not None:
                bins.waited_ps = now_ps - access.submitted_ps
            begin_ps, end_ps = self._port.reserve(now_ps, access.tail_ps, access.nbytes)
            if train is not None:
                train.at_memory((0,), access.submitted_ps, begin_ps, end_ps)
            if begin_ps > now_ps:
                self._later[access.message] = accesses
                self._engine.at(begin_ps, self._next, access.message)
                access.begun(begin_ps, begin_ps, end_ps)
                return
            access.begun(begin_ps, begin_ps, end_ps)

    def _next(self, message: MessageKey) -> None:
        self._reserve(self._later.pop(message))


if TYPE_CHECKING or not IS_COMPILED:
    PortTurns = ReferencePortTurns
else:
    from sip_node.compiled.port_turns import PortTurns  # noqa: F401 - the name of this module
