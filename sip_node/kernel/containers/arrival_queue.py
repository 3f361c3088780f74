"""Packets that arrive, by (time, source, seq): `seq` counts the packets from one source."""

from heapq import heappop, heappush
from typing import Any

from runtime.core.simtime import NEVER_PS


class ArrivalQueue:
    """A queue, empty at first. `source` and `tail_ps` are those of the packet of the last `pop`."""

    __slots__ = ("_packets", "source", "tail_ps")

    def __init__(self) -> None:
        self._packets: list[tuple[int, int, int, int, Any]] = []
        self.source = self.tail_ps = 0

    def first_ps(self) -> int:
        """The time of the first packet, `NEVER_PS` without any."""
        return self._packets[0][0] if self._packets else NEVER_PS

    def put(self, time_ps: int, source: int, seq: int, tail_ps: int, packet: Any) -> None:
        """Add a packet whose head comes at `time_ps`, its tail at `tail_ps`."""
        # (time, source, seq) is unique, so the packets themselves are never compared.
        heappush(self._packets, (time_ps, source, seq, tail_ps, packet))

    def waiting(self) -> list[tuple[int, int, int, int, Any]]:
        """(time, source, seq, tail, packet) of every packet, in their order."""
        return sorted(self._packets)

    def pop(self) -> Any:
        """Remove the first packet."""
        _, self.source, _, self.tail_ps, packet = heappop(self._packets)
        return packet
