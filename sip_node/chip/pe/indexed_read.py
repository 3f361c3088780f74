"""The rows of memory that an index list in TCM names, read as one request of a DMA engine.

The engine reads the list through the port of TCM. It then takes `row_ps` for the descriptor of each
row: its index, its address, the translation. It holds one descriptor while it makes the next one.

    port of TCM    |= list =|
    descriptors             |= 0 =|= 1 =|= 2 =|            |= 3 =|
    READs                         0     1     2 (waits for a place), 3

A row that lies in several extents takes a descriptor for each piece. The READs of all rows pass the
window of the engine as those of one request, with one turn.
"""

from collections.abc import Sequence

from sip_node.chip.fabric.packet import FabricTransfer
from sip_node.chip.fabric.packet_train import PacketTrain, QueueTimes
from sip_node.chip.fabric.server import Server
from sip_node.chip.pe.read_window import ReadWindow
from sip_node.kernel.calendar import Calendar


class IndexedRead:
    """The READs of the rows, in the order of the list, which has `list_bytes`."""

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
        self._ready_ps = self._engine.now_ps + self._row_ps
        self._window.begin(read, self._sent if self._begun < len(self._reads) else None)

    def _sent(self) -> None:
        """The last READ of a row has left: the next descriptor follows when it is complete."""
        self._engine.at(max(self._engine.now_ps, self._ready_ps), self._open)


def _block(transfer: FabricTransfer) -> tuple[object, ...]:
    return transfer.address, transfer.total, transfer.rows
