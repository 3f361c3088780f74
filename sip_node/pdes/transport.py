"""The interface between the loop and the transports that carry frames between LPs.

Random delays may be put around a transport: the result must not depend on when frames arrive.
"""

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Protocol

from runtime.core.rng import seeded
from runtime.core.wallclock import now_s
from runtime.wire.frames import PeerContent


class Transport(Protocol):
    """Carries content between LPs: nothing is lost, repeated or reordered between two LPs.

    Between different pairs there is no order. A frame without messages may be replaced by a later
    frame that the peer receives. One may also come in addition, ahead of a frame: with what of its
    promises holds without its messages. One contract suite holds for every implementation.
    """

    def send(self, peer: int, content: PeerContent) -> bool:
        """Send `content` to LP `peer`, without waiting for it; returns whether that took a message.

        A promise takes none where both LPs share memory.
        """
        ...

    def poll(self) -> list[tuple[int, PeerContent]]:
        """The content received since the last poll, with the sending LP; does not wait."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Return when there is something to poll or to do, at the latest after `timeout_s`."""
        ...

    def close(self) -> None:
        """Release everything; closing again does nothing."""
        ...


class JitterTransport:
    """Delays what `inner` receives by up to `max_delay_s` of real time; the order per peer stays.

    `seed` fixes the sequence of delays. `clock` is in seconds.
    """

    def __init__(
        self,
        inner: Transport,
        max_delay_s: float,
        seed: tuple[int, ...],
        clock: Callable[[], float] = now_s,
    ) -> None:
        self._inner = inner
        self._max_delay_s = max_delay_s
        self._rng = seeded(*seed)
        self._clock = clock
        self._held: dict[int, deque[tuple[float, PeerContent]]] = {}

    def send(self, peer: int, content: PeerContent) -> bool:
        """Send at once; delays happen on the receiving side."""
        return self._inner.send(peer, content)

    def poll(self) -> list[tuple[int, PeerContent]]:
        """The content whose delay is over."""
        # One time for all: content of one poll is delayed from the same moment.
        now = self._clock()
        for peer, content in self._inner.poll():
            # From a seed: a run with an error can be repeated with the same delays.
            due_s = now + self._rng.uniform(0, self._max_delay_s)
            self._held.setdefault(peer, deque()).append((due_s, content))
        due: list[tuple[int, PeerContent]] = []
        # The order between peers is free: nothing may depend on it.
        for peer, queue in self._held.items():
            # Channels are FIFO: content whose delay is over waits for what was received before it.
            while queue and queue[0][0] <= now:
                due.append((peer, queue.popleft()[1]))
        return due

    def wait(self, timeout_s: float) -> None:
        """Wait for the inner transport, but not longer than until the next content is due."""
        due_s = min((queue[0][0] for queue in self._held.values() if queue), default=inf)
        self._inner.wait(min(timeout_s, max(0.0, due_s - self._clock())))

    def close(self) -> None:
        """Drop what is held and close the inner transport."""
        self._held.clear()
        self._inner.close()
