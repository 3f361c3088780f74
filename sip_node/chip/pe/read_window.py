"""The window of a DMA engine: a bounded number of packets in flight to it, for all its requests.

A packet takes a place when its READ is sent, and frees it when its last byte has landed. Requests
with READs left to send take turns, one READ each:

    places   A0 B0 A1 B1 | A2 waits until A0 has landed, B2 until B0 has, ...

So a stream has at most `places` packets in a round trip, which bounds its bandwidth (Little's law),
and a short request beside a long one waits for one turn. No queue of landings is simulated: a
packet that comes is entered with the time at which it lands, and places are counted when a READ
waits for one.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from msgspec import Struct

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.simtime import NEVER_PS
from sip_node.chip.fabric.packet import FabricTransfer, Packet, PacketSender
from sip_node.pdes.engine import Engine


class _OpenRead(Struct, gc=False):
    """A READ of which the packets from byte `begin` on are left to send.

    `sent` is called when the last one has left.
    """

    transfer: FabricTransfer
    begin: int = 0
    sent: Callable[[], None] | None = None


class ReferenceReadWindow:
    """`places` of the engine at `node`: READs of `packet_bytes`, in packets of `control_bytes`."""

    def __init__(
        self,
        engine: Engine,
        fabric: PacketSender,
        node: int,
        places: int,
        packet_bytes: int,
        control_bytes: int,
    ) -> None:
        self._engine, self._fabric, self._node = engine, fabric, node
        self._free, self._packet_bytes, self._control_bytes = places, packet_bytes, control_bytes
        self._landings: list[int] = []
        self._reading: deque[_OpenRead] = deque()
        self._wakes_ps = NEVER_PS

    def begin(self, transfer: FabricTransfer, sent: Callable[[], None] | None = None) -> None:
        """Send the packets of a READ, its first after those of one turn of the others.

        `sent` is called when the last one has left; it begins no READ itself.
        """
        self._reading.append(_OpenRead(transfer, sent=sent))
        self._fill()

    def landed(self, time_ps: int) -> None:
        """A packet has come whose last byte lands at `time_ps`."""
        heappush(self._landings, time_ps)
        # Only a stream that fills the window needs an event for each packet that lands.
        if self._reading:
            self._wake()

    def _fill(self) -> None:
        landings, reading = self._landings, self._reading
        while landings and landings[0] <= self._engine.now_ps:
            heappop(landings)
            self._free += 1
        while reading and self._free:
            self._free -= 1
            request = reading.popleft()
            if self._send(request):
                reading.append(request)
            elif request.sent is not None:
                request.sent()
        if reading:
            self._wake()

    def _send(self, reading: _OpenRead) -> bool:
        """Send the READ of the next packet; returns whether there are more."""
        transfer, begin = reading.transfer, reading.begin
        reading.begin = min(begin + self._packet_bytes, transfer.total)
        last = reading.begin == transfer.total
        packet = Packet(transfer, begin, self._control_bytes, last)
        self._fabric.send(packet, self._node, self._engine.now_ps)
        return not last

    def _wake(self) -> None:
        """Continue when the next packet has landed; before any has come, `landed` does it."""
        if self._landings and self._landings[0] < self._wakes_ps:
            self._wakes_ps = self._landings[0]
            self._engine.at(self._wakes_ps, self._woken)

    def _woken(self) -> None:
        self._wakes_ps = NEVER_PS
        self._fill()


if TYPE_CHECKING or not IS_COMPILED:
    ReadWindow = ReferenceReadWindow
else:
    from sip_node.compiled.read_window import ReadWindow  # noqa: F401 - the name of this module
