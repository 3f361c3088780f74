"""HBM: the latency of a read, and the rates of patterns of accesses to banks.

The timings are those of JEDEC's HBM standards, as keys of the topology file. The patterns are those
by which Ramulator 2.1 is checked: streams, single bursts to rows of one bank or of all banks, two
rows of one bank in turn, hits of an open row, and the share of time that refresh takes.

Let s be the time of the bytes that an access takes of one row. A bank takes a new row every
    T = max(tRAS, tRCD + s) + tRP
since a row is open from its activation for tRAS at least, and until its last byte. A channel takes
a new row every max(s, tRRD, tFAW / 4, T / banks): the data bus, the activations, all of its banks.
"""

from fractions import Fraction

from kernbench.oracle.theory.servers import transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile

BANKS = "hbm.banks."


def read_latency_ps(file: TopologyFile) -> int:
    """Time from a read at an idle slice to its first byte: in model `banks`, of a closed row."""
    if file["hbm.model"] == "banks":
        parts = ("t_rcd_ns", "t_cl_ns", "controller_ns")
        return sum(file.ps(BANKS + part) for part in parts)
    return file.ps("cube.hbm_ctrl.latency_ns")


class BankTimes:
    """Times on one pseudo channel in model `banks`, in picoseconds."""

    def __init__(self, file: TopologyFile) -> None:
        self._file = file
        self.count: int = file[BANKS + "count"]
        self.row_bytes: int = file[BANKS + "row_bytes"]
        self.channel_gbs = file.number("hbm.pc_bw_gbs")

    def bytes_ps(self, nbytes: int) -> int:
        """A hit: the bytes on the data bus."""
        return transfer_ps(nbytes, self.channel_gbs)

    def one_bank_ps(self, nbytes: int) -> int:
        """A new row of a bank for each access of `nbytes`: a conflict each."""
        # A row stays open for tRAS even if its bytes are read earlier; only then is it precharged.
        opened_ps = max(self._ps("t_ras_ns"), self._ps("t_rcd_ns") + self.bytes_ps(nbytes))
        return opened_ps + self._ps("t_rp_ns")

    def all_banks_ps(self, nbytes: int) -> Fraction:
        """A new row for each access of `nbytes`, of the banks in turn: the least time of each."""
        # The four constraints of a channel: its data bus, two activations of different banks
        # (tRRD), four activations in a window (tFAW), and a bank that is used again after all
        # others. B. Jacob, S. Ng, D. Wang, Memory Systems: Cache, DRAM, Disk, 2007, chapter 11.
        return max(
            Fraction(self.bytes_ps(nbytes)),
            Fraction(self._ps("t_rrd_ns")),
            Fraction(self._ps("t_faw_ns"), 4),
            Fraction(self.one_bank_ps(nbytes), self.count),
        )

    def refresh_share(self) -> Fraction:
        """Share of the time for accesses: all but tRFC, and tRCD to open a row again, per tREFI."""
        # A refresh closes the rows, so the first access behind it activates one again.
        interval_ps = self._ps("t_refi_ns")
        if not interval_ps:
            return Fraction(1)
        return 1 - Fraction(self._ps("t_rfc_ns") + self._ps("t_rcd_ns"), interval_ps)

    def stream_gbs(self) -> Fraction:
        """Bandwidth of a channel for a stream of whole rows."""
        row_ps = self.all_banks_ps(self.row_bytes)
        return self.row_bytes * 1000 / row_ps * self.refresh_share()

    def _ps(self, timing: str) -> int:
        return self._file.ps(BANKS + timing)
