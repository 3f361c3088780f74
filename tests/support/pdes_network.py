"""A network whose delivery delays and turns come from a seed: every interleaving of a run can be
had again.
"""

from collections import deque
from collections.abc import Callable
from itertools import cycle

from runtime.core.rng import seeded
from runtime.wire.frames import Frame, PeerContent
from sip_node.pdes.transport import Transport
from tests.support.transport_memory import MemoryNetwork


class DelayingTransport:
    """Holds what the inner transport receives; each poll lets a random number of items pass, per
    peer in order. Of promises that pass together the latest remains, as on a board.
    """

    def __init__(self, inner: Transport, *seed: int) -> None:
        self._inner = inner
        self._rng = seeded(*seed)
        self._held: dict[int, deque[PeerContent]] = {}

    def send(self, peer: int, content: PeerContent) -> bool:
        return self._inner.send(peer, content)

    def poll(self) -> list[tuple[int, PeerContent]]:
        for peer, content in self._inner.poll():
            self._held.setdefault(peer, deque()).append(content)
        passed: list[tuple[int, PeerContent]] = []
        for peer in self._rng.sample(sorted(self._held), len(self._held)):
            queue = self._held[peer]
            items = [queue.popleft() for _ in range(self._rng.randint(0, len(queue)))]
            passed += [(peer, item) for item in (_without_replaced(items))]
        return passed

    def wait(self, timeout_s: float) -> None:
        pass

    def close(self) -> None:
        self._held.clear()
        self._inner.close()


def _without_replaced(items: list[PeerContent]) -> list[PeerContent]:
    """The frames without the promises that a later frame of the same peer replaces."""
    last = max((i for i, item in enumerate(items) if isinstance(item, Frame)), default=-1)
    return [
        item
        for i, item in enumerate(items)
        if not isinstance(item, Frame) or item.messages or i == last
    ]


class Tap:
    """Keeps all that an LP sends, with the receiver."""

    def __init__(self, lp: int, inner: Transport) -> None:
        self.lp, self._inner = lp, inner
        self.sent: list[tuple[int, PeerContent]] = []

    def send(self, peer: int, content: PeerContent) -> bool:
        self.sent.append((peer, content))
        return self._inner.send(peer, content)

    def poll(self) -> list[tuple[int, PeerContent]]:
        return self._inner.poll()

    def wait(self, timeout_s: float) -> None:
        self._inner.wait(timeout_s)

    def close(self) -> None:
        self._inner.close()


def prompt(lps: int) -> tuple[list[Transport], Callable[[], int]]:
    """Items arrive without delay, and the LPs take turns."""
    network = MemoryNetwork(lps)
    turns = cycle(range(lps))
    return [network.transport(lp) for lp in range(lps)], lambda: next(turns)


def scrambled(lps: int, seed: int) -> tuple[list[Transport], Callable[[], int]]:
    """Random delays of items, and random turns, in which an LP may wait long for its turn."""
    network = MemoryNetwork(lps)
    rng = seeded(seed)
    weights = [rng.choice((1, 1, 8)) for _ in range(lps)]
    transports: list[Transport] = [
        DelayingTransport(network.transport(lp), seed, lp) for lp in range(lps)
    ]
    return transports, lambda: rng.choices(range(lps), weights)[0]
