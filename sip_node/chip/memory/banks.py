"""An HBM slice with banks: rows are activated and precharged, and the channels are refreshed.

The bytes of a slice lie on its pseudo channels by burst striping, as in `hbm`. Those of a channel
fill rows of `row_bytes`; consecutive rows lie on consecutive banks:

    bytes of the channel  0        1024     2048          row_bytes = 1024, 16 banks
    row, bank             | 0, b0  | 0, b1  | 0, b2  ...  | 0, b15 | 1, b0  | 1, b1  ...

A bank has one open row. The commands of an access to a row, with the least times between them:

    hit                                             column ... column
    closed          activate --------- tRCD ------> column ...
    conflict        precharge -- tRP -> activate -- tRCD --> column ...

A precharge comes at least tRAS after the activation and after the last column of its row; two
activations of a channel are at least tRRD apart, five at least tFAW; so one bank takes a new row
every tRC = tRAS + tRP at most. The controller serves in the order of the queue and does not reorder
columns, but it precharges and activates for an access as soon as the access has arrived and the
bank has served the access before it. A column occupies the channel for its bytes at the raw
bandwidth; its data follow tCL later, which is part of the latency of a read.

Every tREFI all banks are refreshed: after the columns in progress, the channel rests for tRFC, and
all rows are closed.
"""

from collections import deque
from collections.abc import Sequence

from runtime.core.simtime import NEVER_PS, ps_from_ns
from runtime.model.schema.hbm_schema import HbmBanks
from runtime.model.topology import Topology
from sip_node.chip.fabric.server import Server
from sip_node.chip.memory.access import Access
from sip_node.chip.records.time_bins import TimeBins

RowPart = tuple[int, int]
"""A row, numbered through all banks of a channel, and bytes of it."""

RowParts = tuple[int, list[RowPart]]
"""The arrival of the access that needs the parts, and these in the order of their addresses."""

ACTIVATIONS = 4
"""Activations in a window of tFAW: the first of them is at least tFAW before the next one."""


class BankTimings:
    """The timings of rows and of refresh, in picoseconds."""

    def __init__(self, banks: HbmBanks) -> None:
        self.rcd_ps, self.rp_ps = ps_from_ns(banks.t_rcd_ns), ps_from_ns(banks.t_rp_ns)
        self.ras_ps = ps_from_ns(banks.t_ras_ns)
        self.rrd_ps, self.faw_ps = ps_from_ns(banks.t_rrd_ns), ps_from_ns(banks.t_faw_ns)
        self.refi_ps, self.rfc_ps = ps_from_ns(banks.t_refi_ns), ps_from_ns(banks.t_rfc_ns)


class _DramBank:
    """A bank: its open row, or None, and the times that bound its next commands."""

    __slots__ = ("activated_ps", "columns_ps", "row")

    def __init__(self) -> None:
        self.row: int | None = None
        self.activated_ps = 0
        # The end of its last column; of a closed bank, the end of the refresh that closed it.
        self.columns_ps = 0


class BankedChannel:
    """A pseudo channel with its banks. `free_ps` is the end of its last column.

    `bins` are its load over time, in a run with records.
    """

    def __init__(self, name: str, topology: Topology) -> None:
        self._timings = BankTimings(topology.hbm.banks)
        # At the raw bandwidth: rows and refresh take their own time here, and `efficiency`, which
        # stands for them in the model without banks, would count them twice.
        self._bus = Server(name, topology.hbm.pc_bw_gbs)
        self._banks = [_DramBank() for _ in range(topology.hbm.banks.count)]
        self._penalty_ps = ps_from_ns(topology.cube.hbm_ctrl.switch_penalty_ns)
        # An activation draws a pulse of current, so JEDEC (JESD238, HBM3) allows four in a window
        # of tFAW.
        self._activations: deque[int] = deque(maxlen=ACTIVATIONS)
        # None before the first access, which pays no penalty.
        self._wrote: bool | None = None
        self._refresh_ps = self._timings.refi_ps or NEVER_PS
        self.name = name
        self.bins: TimeBins | None = None
        self.free_ps = 0

    def serve(
        self,
        parts: RowParts,
        head_ps: int,
        tail_ps: int,
        writes: bool,  # noqa: FBT001 - the direction of an access, as in `Access`
    ) -> tuple[int, int]:
        """(begin of the first column, end of the last one); none begins before `head_ps`."""
        arrived_ps, rows = parts
        # The data bus changes direction, and carries nothing meanwhile (tWTR and tRTW of JEDEC).
        if self._wrote is (not writes):
            self.free_ps += self._penalty_ps
        self._wrote = writes
        begins_ps = NEVER_PS
        for number, nbytes in rows:
            begin_ps = self._column_ps(number, arrived_ps, head_ps)
            self.free_ps = begin_ps + self._bus.serialisation_ps(nbytes)
            self._banks[number % len(self._banks)].columns_ps = self.free_ps
            begins_ps = min(begins_ps, begin_ps)
        # A write over a narrow link holds the channel until its last byte has come.
        self.free_ps = max(self.free_ps, tail_ps)
        if self.bins is not None:
            nbytes = sum(part for _, part in rows)
            self.bins.add(begins_ps, self.free_ps, nbytes, begins_ps - head_ps, 1)
        return begins_ps, self.free_ps

    def _column_ps(self, number: int, arrived_ps: int, head_ps: int) -> int:
        """The earliest first column of a row; activates the row where it is not open."""
        row, index = divmod(number, len(self._banks))
        bank = self._banks[index]
        self._refresh_until(max(self.free_ps, head_ps))
        begin_ps = max(self.free_ps, head_ps, self._ready_ps(bank, row, arrived_ps))
        if begin_ps >= self._refresh_ps:
            # The row would be ready during or after the refresh, which closes it again.
            self._refresh_until(begin_ps)
            begin_ps = max(self.free_ps, head_ps, self._ready_ps(bank, row, arrived_ps))
        # Open page: the row stays open for accesses to come, until another row of the bank or a
        # refresh closes it. Streams profit, random accesses pay tRP.
        if bank.row != row:
            bank.row, bank.activated_ps = row, self._activation_ps(bank, arrived_ps)
            self._activations.append(bank.activated_ps)
        return begin_ps

    def _ready_ps(self, bank: _DramBank, row: int, arrived_ps: int) -> int:
        activated_ps = (
            bank.activated_ps if bank.row == row else self._activation_ps(bank, arrived_ps)
        )
        return activated_ps + self._timings.rcd_ps

    def _activation_ps(self, bank: _DramBank, arrived_ps: int) -> int:
        """The earliest activation of another row, for an access that arrived at `arrived_ps`."""
        times, before = self._timings, self._activations
        # The controller sees an access when it has arrived; the row before is needed to its last
        # column.
        ready_ps = max(arrived_ps, bank.columns_ps)
        # Reading a row destroys its charge, which tRAS restores: only then may the precharge close
        # it.
        if bank.row is not None:
            ready_ps = max(ready_ps, bank.activated_ps + times.ras_ps) + times.rp_ps
        # Also of different banks: they share the supply of the channel.
        if before:
            ready_ps = max(ready_ps, before[-1] + times.rrd_ps)
        if len(before) == ACTIVATIONS:
            ready_ps = max(ready_ps, before[0] + times.faw_ps)
        return ready_ps

    def _refresh_until(self, time_ps: int) -> None:
        """Do the refreshes that are due at `time_ps`."""
        times = self._timings
        if time_ps < self._refresh_ps:
            return
        if self.free_ps <= self._refresh_ps:
            # Of those in a time without accesses only the last one can matter.
            self._refresh_ps += (time_ps - self._refresh_ps) // times.refi_ps * times.refi_ps
        while self._refresh_ps <= time_ps:
            # A refresh of all banks (REFab) needs them precharged: it waits for the columns in
            # progress, and leaves no row open.
            self.free_ps = max(self.free_ps, self._refresh_ps) + times.rfc_ps
            self._refresh_ps += times.refi_ps
            # One refresh may last until the next one is due.
            time_ps = max(time_ps, self.free_ps)
        for bank in self._banks:
            bank.row, bank.columns_ps = None, self.free_ps


class BankedChannels:
    """The channels of one slice, in model `banks`."""

    def __init__(self, name: str, topology: Topology) -> None:
        hbm = topology.hbm
        self._burst_bytes, self._row_bytes = hbm.burst_bytes, hbm.banks.row_bytes
        self.channels = [
            BankedChannel(f"{name}.pc{index}", topology) for index in range(hbm.num_pcs)
        ]

    def shares_of(self, access: Access) -> list[RowParts | None]:
        """The parts of rows that an access needs of each channel."""
        parts: list[list[RowPart]] = [[] for _ in self.channels]
        if access.rows is None:
            self._add_range(parts, access.offset, access.nbytes)
        else:
            for start, length, row_bytes in access.rows.runs(access.begin, access.nbytes):
                for index in range(length):
                    offset = access.offset + start + index * access.rows.pitch
                    self._add_range(parts, offset, row_bytes)
        return [(access.arrived_ps, each) if each else None for each in parts]

    def reserve(
        self,
        shares: Sequence[RowParts | None],
        head_ps: int,
        tail_ps: int,
        writes: bool,  # noqa: FBT001 - the direction of an access, as in `Access`
    ) -> tuple[int, int, int]:
        """(begin of the first channel, begin of the last one, end); see `MemoryChannels`."""
        first_ps, start_ps, done_ps = NEVER_PS, head_ps, tail_ps
        for channel, share in zip(self.channels, shares, strict=True):
            if share is not None:
                begin_ps, end_ps = channel.serve(share, head_ps, tail_ps, writes)
                first_ps = min(first_ps, begin_ps)
                start_ps, done_ps = max(start_ps, begin_ps), max(done_ps, end_ps)
        return first_ps, start_ps, done_ps

    def _add_range(self, parts: list[list[RowPart]], offset: int, nbytes: int) -> None:
        """Add the bytes [offset, offset + nbytes) of the slice, contiguous on each channel."""
        end = offset + nbytes
        for index, rows in enumerate(parts):
            begin = self._bytes_before(offset, index)
            left = self._bytes_before(end, index) - begin
            while left:
                number, column = divmod(begin, self._row_bytes)
                size = min(self._row_bytes - column, left)
                # One row may hold several rows of a matrix: they are one part of it.
                if rows and rows[-1][0] == number:
                    rows[-1] = (number, rows[-1][1] + size)
                else:
                    rows.append((number, size))
                begin, left = begin + size, left - size

    def _bytes_before(self, offset: int, index: int) -> int:
        """Bytes of channel `index` below `offset` of the slice."""
        burst = self._burst_bytes
        rounds, rest = divmod(offset, burst * len(self.channels))
        return rounds * burst + min(max(rest - index * burst, 0), burst)
