"""Times of the requests of one DMA engine that meet: in its queue, its window, the port of TCM.

The PE is PE 0 of cube 0, its memory its own HBM slice. Links and the port of TCM are wide enough
that the slice is the slowest server for full packets, each of which takes S there.
"""

from fractions import Fraction
from math import ceil

from kernbench.oracle.theory.bandwidths import channel_gbs
from kernbench.oracle.theory.paths.memory_access import MemoryAccess, pe_and_slice
from kernbench.oracle.theory.paths.routes import TCM_GBS, RouteEnd
from kernbench.oracle.theory.servers import transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile

_PE = 0, 0


class DmaTimes:
    """The times of one topology file."""

    def __init__(self, file: TopologyFile) -> None:
        self._file, self._access = file, MemoryAccess(file)
        self._read_start_ps = self._access.commands.read_start_ps
        self._row_ps = file.ps("pe.dma.gather_row_ns")
        self._packet_bytes: int = file["packet_bytes"]

    @property
    def packet_ps(self) -> int:
        """S, a full packet on all channels of the slice."""
        return self.read_ps(2 * self._packet_bytes) - self.read_ps(self._packet_bytes)

    @property
    def full_window(self) -> int:
        """Packets in flight which keep the slice busy: more than a round trip holds."""
        return ceil(Fraction(self.read_ps(self._packet_bytes), self.packet_ps)) + 1

    def read_ps(self, nbytes: int) -> int:
        """A read without the overhead of the DMA."""
        return self.load_ps(nbytes) - self._read_start_ps

    def load_ps(self, nbytes: int) -> int:
        """A load from the channel of the DMA to the last byte in TCM."""
        return self._access.dma_ps(_PE, _PE, nbytes)

    def store_ps(self, nbytes: int) -> int:
        """A store from the channel of the DMA to its acknowledgement."""
        return self._access.write(*pe_and_slice(_PE, _PE), nbytes).total_ps

    def atomic_ps(self, *, is_read: bool) -> int:
        """An atomic operation on a packet of whole rounds of the channels.

        A store, behind whose read the controller waits for the first byte, and then writes; the
        old elements, if the kernel reads them, replace the acknowledgement.
        """
        pe, memory = pe_and_slice(_PE, _PE)
        times, hops = self._access.times, self._access.hops(memory, pe)
        first = times.first_byte(memory.name, self._file)
        total_ps = self.store_ps(self._packet_bytes) + first.latency_ps + self.packet_ps
        if not is_read:
            return total_ps
        old = times.data(hops, self._packet_bytes, None, self._access.memory(pe))
        return total_ps + old.total_ps - times.control("ack", hops).total_ps

    def gather_ps(self, rows: int, row_bytes: int) -> int:
        """A gather of rows of a packet or less, whose descriptors take longer than their service.

        The list passes the port of TCM, then the READ of each row leaves with its descriptor.
        """
        return self._first_row_ps(rows) + (rows - 1) * self._row_ps + self.read_ps(row_bytes)

    def windowed_gather_ps(self, rows: int, row_bytes: int, window: int) -> int:
        """A gather of rows of a packet or less on different channels, `window` rows in flight.

        Row k + w leaves when row k has landed: a round trip for each w rows (Little's law).
        """
        trips, last = divmod(rows - 1, window)
        trip_ps = self.read_ps(row_bytes)
        return self._first_row_ps(rows) + last * self._row_ps + (trips + 1) * trip_ps

    def long_gather_ps(self, rows: int, row_bytes: int) -> int:
        """A gather of rows of many packets, in a window that keeps the slice busy: n/B.

        All descriptors but the first are made while the row before is read.
        """
        return self._first_row_ps(rows) + self.read_ps(rows * row_bytes)

    def short_read_end_ps(self, long_start_ps: int, short_start_ps: int) -> int:
        """The end of a read of one packet beside a long one that fills the window.

        The long read has every turn until the short one begins, and the next one. The READ of the
        short read leaves with the packet of the long one that lands after that. The slice serves
        one packet after the other; it takes the short message at the end of the packet that it
        serves then, before the next one of the long message.
        """
        first_ps, packet_ps = long_start_ps + self._read_start_ps, self.packet_ps
        trip_ps = self.read_ps(self._packet_bytes)
        # Packet k of the long read lands at first + trip + k S.
        landed = max(self._whole(short_start_ps - long_start_ps - trip_ps), 0)
        leaves_ps = first_ps + trip_ps + (landed + 1) * packet_ps
        # The slice begins a packet every S, the first one when the READ that left first arrives.
        served = self._whole(leaves_ps - first_ps)
        return first_ps + served * packet_ps + trip_ps

    def write_beside_store_ps(self, source: int, store_ps: int, write_ps: int) -> int:
        """The end of a write of one packet from PE `source` to the TCM of PE 0, beside a store.

        The store of PE 0 gets its channel at `store_ps`, the write that of its own PE at
        `write_ps`. The packets of the store pass the slow port of TCM one after the other. A packet
        reserves the port when its predecessor begins: the write comes behind the packet that
        follows the packet in service.
        """
        ends = RouteEnd("pe", 0, 0, source), RouteEnd("pe", 0, 0, 0)
        written, answered = self._access.write(*ends, self._packet_bytes).legs
        port_ps = transfer_ps(self._packet_bytes, self._file.number(TCM_GBS))
        began_ps = store_ps + self._access.commands.write_start_ps
        served = (write_ps + written.latency_ps - began_ps) // port_ps
        return began_ps + (served + 3) * port_ps + answered.total_ps

    def planes_ps(self, bursts_on_a_channel: int) -> int:
        """A load command of one packet with a number of whole bursts on its busiest channel."""
        nbytes = bursts_on_a_channel * self._file["hbm.burst_bytes"]
        latency_ps = self._access.read(*pe_and_slice(_PE, _PE), nbytes).latency_ps
        issued_ps = self._access.commands.translated_ps
        return issued_ps + latency_ps + transfer_ps(nbytes, channel_gbs(self._file))

    def _first_row_ps(self, rows: int) -> int:
        """Time from the DMA channel to the first READ of a gather, whose list is of int32."""
        list_ps = transfer_ps(4 * rows, self._file.number(TCM_GBS))
        return self._read_start_ps + list_ps + self._row_ps

    def _whole(self, time_ps: int) -> int:
        """Times of a packet that cover a time."""
        return ceil(Fraction(time_ps, self.packet_ps))
