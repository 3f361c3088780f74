"""A transport for LPs in one thread: content goes from queue to queue as Python objects."""

from runtime.wire.frames import PeerContent


class MemoryNetwork:
    """The queues of `lps` LPs; content is received in the order in which it was sent."""

    def __init__(self, lps: int) -> None:
        self._queues: list[list[tuple[int, PeerContent]]] = [[] for _ in range(lps)]

    def transport(self, lp: int) -> "MemoryTransport":
        """The end that LP `lp` uses."""
        return MemoryTransport(lp, self._queues)


class MemoryTransport:
    """One LP's end of a `MemoryNetwork`."""

    def __init__(self, lp: int, queues: list[list[tuple[int, PeerContent]]]) -> None:
        self._lp = lp
        self._queues = queues

    def send(self, peer: int, content: PeerContent) -> bool:
        """Append `content` to the queue of LP `peer`."""
        self._queues[peer].append((self._lp, content))
        return True

    def poll(self) -> list[tuple[int, PeerContent]]:
        """Everything sent to this LP since the last poll."""
        received = self._queues[self._lp]
        self._queues[self._lp] = []
        return received

    def wait(self, timeout_s: float) -> None:
        """Return at once: in one thread nothing comes while this LP waits."""

    def close(self) -> None:
        """Drop what was not polled."""
        self._queues[self._lp] = []
