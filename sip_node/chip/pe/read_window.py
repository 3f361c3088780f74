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
from typing import Any

import sip_node.chip.fabric.packet as packets
from sip_node.chip.fabric.packet import FabricTransfer, PacketSender
from sip_node.kernel import exact
from sip_node.kernel.component import Component
from sip_node.kernel.outlet import Outlet
from sip_node.pdes.engine import Engine

_WOKEN = 0


class OpenRead:
    """A READ of which the packets from byte `begin` on are left to send.

    `sent` is called when the last one has left.
    """

    def __init__(self, transfer: FabricTransfer, sent: Callable[[], None] | None) -> None:
        self.transfer, self.begin, self.sent = transfer, 0, sent


class ReadWindow(Component):
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
        self.join(engine)
        self._outlet, self.free = Outlet(fabric, node), places
        self._packet_bytes, self._control_bytes = packet_bytes, control_bytes
        self.landings: list[int] = []
        self.reading: deque[OpenRead] = deque()
        self.wakes_ps = exact.NEVER_PS

    def begin(self, transfer: FabricTransfer, sent: Callable[[], None] | None = None) -> None:
        """Send the packets of a READ, its first after those of one turn of the others.

        `sent` is called when the last one has left; it begins no READ itself.
        """
        self.reading.append(OpenRead(transfer, sent))
        self._fill()

    def landed(self, time_ps: int) -> None:
        """A packet has come whose last byte lands at `time_ps`."""
        heappush(self.landings, time_ps)
        # Only a stream that fills the window needs an event for each packet that lands.
        if self.reading:
            self._wake()

    def _fill(self) -> None:
        landings, reading = self.landings, self.reading
        while landings and landings[0] <= self.engine.now_ps:
            heappop(landings)
            self.free += 1
        while reading and self.free:
            self.free -= 1
            request = reading.popleft()
            if self._send(request):
                reading.append(request)
            elif request.sent is not None:
                request.sent()
        if reading:
            self._wake()

    def _send(self, reading: OpenRead) -> bool:
        """Send the READ of the next packet; returns whether there are more."""
        transfer, begin = reading.transfer, reading.begin
        reading.begin = min(begin + self._packet_bytes, transfer.total)
        last = reading.begin == transfer.total
        packet = packets.new_packet(transfer, begin, self._control_bytes, last)
        self._outlet.send(packet, self.engine.now_ps)
        return not last

    def _wake(self) -> None:
        """Continue when the next packet has landed; before any has come, `landed` does it."""
        if self.landings and self.landings[0] < self.wakes_ps:
            self.wakes_ps = self.landings[0]
            self.later(self.wakes_ps, _WOKEN, None)

    def proceed(self, step: int, subject: Any) -> None:  # noqa: ARG002 - it has one step
        """The next packet has landed."""
        self.wakes_ps = exact.NEVER_PS
        self._fill()
