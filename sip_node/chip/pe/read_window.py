"""The READs of a DMA engine and their DATA: a bounded number of packets is in flight to it.

A packet takes a place when its READ is sent, and frees it when its last byte has landed. Requests
with READs left to send take turns, one READ each:

    places   A0 B0 A1 B1 | A2 waits until A0 has landed, B2 until B0 has, ...

So a stream has at most `places` packets in a round trip, which bounds its bandwidth (Little's law),
and a short request beside a long one waits for one turn. No queue of landings is simulated: a
packet that comes is entered with the time at which it lands, and places are counted when a READ
waits for one.

DATA lands in TCM, or is sent on to another memory. Either way a packet frees its place when its
last byte has come so far:

    DATA ---> port of TCM ---> landed              (a read)
    DATA ---> WRITE ---> another memory            (a copy: past our TCM, cut-through)
"""

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

import sip_node.chip.fabric.packet as packets
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet, PacketSender
from sip_node.chip.fabric.server import FifoServer, Server
from sip_node.chip.records.packet_train import PacketTrain, QueueTimes
from sip_node.kernel import exact
from sip_node.kernel.calendar import Calendar
from sip_node.kernel.component import Component
from sip_node.kernel.outlet import Outlet

_WOKEN = 0
_OLD = Kind.OLD


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
        engine: Calendar,
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
        # Entered ahead of its time: the port is FIFO, so the landing is certain when the packet
        # comes.
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
            # Behind the others, with one READ a turn: a short request waits for a turn and not for
            # the end of a long one.
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


class IndexedRead:
    """The READs of the rows of memory that an index list in TCM names, as one request.

    The engine reads the list, of `list_bytes`, through the port of TCM. It then takes `row_ps` for
    the descriptor of each row: its index, its address, the translation. It holds one descriptor
    while it makes the next one.

        port of TCM    |= list =|
        descriptors             |= 0 =|= 1 =|= 2 =|            |= 3 =|
        READs                         0     1     2 (waits for a place), 3

    A row that lies in several extents takes a descriptor for each piece. The READs of all rows pass
    the window as those of one request, with one turn.
    """

    def __init__(
        self,
        engine: Calendar,
        port: Server,
        window: ReadWindow,
        row_ps: int,
        list_bytes: int,
        reads: Sequence[FabricTransfer],
    ) -> None:
        self._engine, self._port, self._window = engine, port, window
        self._row_ps, self._list_bytes, self._reads = row_ps, list_bytes, reads
        self._begun = self._ready_ps = self._come = self.landed_ps = 0
        # By the block that was read. An index may come twice, and then its bytes come twice.
        self._bytes: dict[tuple[object, ...], bytes] = {}

    def tagged(self, tag: int) -> int:
        """Give all READs the tag of their request; returns their bytes."""
        for read in self._reads:
            read.tag = tag
        return sum(read.total for read in self._reads)

    def give_trains(self, times: QueueTimes) -> None:
        """Add what the packets of all rows queue to the times of their request."""
        for read in self._reads:
            read.train = PacketTrain(times)

    def begin(self) -> None:
        """The request has a channel, and its overhead is over: read the list."""
        now_ps = self._engine.now_ps
        for read in self._reads:
            read.sent_ps = now_ps
        _, list_ps = self._port.reserve(now_ps, now_ps, self._list_bytes)
        self._engine.at(list_ps + self._row_ps, self._open)

    def landed(self, data: FabricTransfer, landed_ps: int) -> bool:
        """DATA of a row is in TCM at `landed_ps`; returns whether it is the last one to come."""
        self._bytes[_block(data)] = bytes(data.payload)
        self._come += 1
        self.landed_ps = max(self.landed_ps, landed_ps)
        return self._come == len(self._reads)

    @property
    def data(self) -> bytes:
        """The bytes of all rows, in the order of the list; none in a run without data."""
        return b"".join(self._bytes[_block(read)] for read in self._reads)

    def _open(self) -> None:
        """A descriptor is complete: its READs are those of the request now."""
        read = self._reads[self._begun]
        self._begun += 1
        # The next descriptor is made meanwhile: short rows are bound by the slower of the two.
        self._ready_ps = self._engine.now_ps + self._row_ps
        self._window.begin(read, self._sent if self._begun < len(self._reads) else None)

    def _sent(self) -> None:
        """The last READ of a row has left: the next descriptor follows when it is complete."""
        self._engine.at(max(self._engine.now_ps, self._ready_ps), self._open)


def _block(transfer: FabricTransfer) -> tuple[object, ...]:
    return transfer.address, transfer.total, transfer.rows


class DataLanding(Component):
    """The packets of DATA that arrive at `node`, whose TCM has `port`.

    `landed(transfer, landed_ps)` is called when all packets of a transfer have come; the last byte
    is in the memory at `landed_ps`.
    """

    def __init__(
        self,
        engine: Calendar,
        port: FifoServer,
        fabric: PacketSender,
        node: int,
        window: ReadWindow,
        landed: Callable[[FabricTransfer, int], None],
    ) -> None:
        self.join(engine)
        self._port, self._outlet = port, Outlet(fabric, node)
        self._window, self._landed = window, landed
        self.writes: dict[int, FabricTransfer] = {}
        # The bytes that have come of transfers in several packets.
        self.come: dict[FabricTransfer, int] = {}

    def forward(self, write: FabricTransfer) -> None:
        """Send the DATA with the tag of `write` on as that transfer."""
        self.writes[write.tag] = write

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Take a packet whose head has arrived and whose tail arrives at `tail_ps`."""
        data, come, write = packet.transfer, packet.size, None
        # Bytes are counted, since the answers to two READs may come in either order.
        if come < data.total:
            come += self.come.pop(data, 0)
        complete = come == data.total
        if not complete:
            self.come[data] = come
        if self.writes:
            write = self.writes.get(data.tag)
        if write is None:
            port, head_ps = self._port, self.engine.now_ps
            start_ps = port.serve(head_ps, tail_ps, packet.size)
            tail_ps = port.tail_ps
            if packet.train is not None:
                packet.train.at_port(head_ps, start_ps, tail_ps)
        else:
            if complete:
                write.payload = data.payload
                del self.writes[data.tag]
            # Which packet is the last one depends on the order of the answers, not on its bytes.
            onward = packets.new_packet(write, packet.begin, packet.size, complete)
            self._outlet.send(onward, tail_ps)
        # The port of the TCM is FIFO: when the last packet to come has landed, all have.
        if complete:
            # In this SIP: of a transfer between SIPs of one LP, no packet is in the other one now.
            data.train = packet.train
            self._landed(data, tail_ps)
        # A place is that of the bytes in the engine: it is free when they are in TCM. The old
        # elements of an ATOMIC have none, since no READ has requested them.
        if data.kind is not _OLD:
            self._window.landed(tail_ps)
