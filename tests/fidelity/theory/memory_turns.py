"""Ends of single packets and of equal reads that meet at one HBM slice, with wide links.

The slice serves packet by packet, the messages in turn, each packet in S = bytes / bandwidth of the
slice. Let k messages of m packets arrive within S of the first one, at a. Packet j of message i, in
the order of arrival, begins at a + (j k + i) S, so all of them end within k S:

    message i ends at a + ((m - 1) k + i + 1) S.

A packet that arrives while another one is served waits for that one only.
"""

from collections.abc import Mapping

from kernbench.oracle.theory.bandwidths import slice_gbs
from kernbench.oracle.theory.paths.memory_access import CubePe, MemoryAccess, pe_and_slice
from kernbench.oracle.theory.paths.transfers import TransferForm
from kernbench.oracle.theory.servers import transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile

OWNER: CubePe = (0, 0)
"""The PE whose slice is accessed."""


class MemoryTurns:
    """Accesses of PEs of cube 0 to the slice of PE 0; each PE starts its access at some time."""

    def __init__(self, file: TopologyFile) -> None:
        self._file, self._access = file, MemoryAccess(file)
        self.packet_ps = self.service_ps(file["packet_bytes"])

    def service_ps(self, nbytes: int) -> int:
        """Whole rounds of all channels."""
        return transfer_ps(nbytes, slice_gbs(self._file))

    def requested_ps(self, pe: int) -> int:
        """Time from the start of a read until its request arrives."""
        request, _ = self._read(pe).legs
        return request.total_ps

    def writes_from_ps(self, pe: int) -> int:
        """Time from the start of a write until its head arrives."""
        data, _ = self._write(pe).legs
        return data.latency_ps

    def returned_ps(self, pe: int) -> int:
        """Time from the service of the last byte of a read until its end."""
        _, data = self._read(pe).legs
        return data.latency_ps

    def acknowledged_ps(self, pe: int) -> int:
        """Time from the service of the last byte of a write until its end."""
        _, answer = self._write(pe).legs
        return answer.total_ps

    def reads_end_ps(self, starts_ps: Mapping[int, int], packets: int) -> dict[int, int]:
        """The ends of reads of as many packets each, by PE; `starts_ps` are their starts."""
        arrivals_ps = {pe: start_ps + self.requested_ps(pe) for pe, start_ps in starts_ps.items()}
        order = sorted(arrivals_ps, key=arrivals_ps.__getitem__)
        first_ps, before = arrivals_ps[order[0]], (packets - 1) * len(order)
        return {
            pe: first_ps + (before + place) * self.packet_ps + self.returned_ps(pe)
            for place, pe in enumerate(order, start=1)
        }

    def writes_end_ps(
        self, read_ps: int, starts_ps: Mapping[int, int], penalty_ps: int
    ) -> dict[int, int]:
        """The ends of writes of a packet each behind a read of one by PE 0 that starts at
        `read_ps`, in the order of their arrivals; `penalty_ps` is the change of direction.
        """
        arrivals_ps = {pe: start_ps + self.writes_from_ps(pe) for pe, start_ps in starts_ps.items()}
        served_ps, ends_ps = read_ps + self.requested_ps(0) + self.packet_ps, dict[int, int]()
        for pe in sorted(arrivals_ps, key=arrivals_ps.__getitem__):
            # A slice that is idle has changed its direction before a late write arrives.
            turn_ps = 0 if ends_ps else penalty_ps
            served_ps = max(served_ps + turn_ps, arrivals_ps[pe]) + self.packet_ps
            ends_ps[pe] = served_ps + self.acknowledged_ps(pe)
        return ends_ps

    def _read(self, pe: int) -> TransferForm:
        return self._access.read(*pe_and_slice((0, pe), OWNER), self._file["packet_bytes"])

    def _write(self, pe: int) -> TransferForm:
        return self._access.write(*pe_and_slice((0, pe), OWNER), self._file["packet_bytes"])
