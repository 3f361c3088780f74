"""An HBM slice: pseudo channels behind one controller, which an address selects by burst striping.

    offset   0      256     512     768     1024 ...      burst_bytes = 256, num_pcs = 4
    channel  | pc0  | pc1   | pc2   | pc3   | pc0  ...

So an access of many bursts uses all channels at once and has the bandwidth of the slice, while rows
at a pitch of `burst_bytes x num_pcs` all lie on one channel and have the bandwidth of that.
"""

from collections.abc import Sequence
from functools import cache

from runtime.core.simtime import ps_from_ns
from runtime.model.topology import Topology
from sip_node.chip.fabric.server import FifoServer, Server
from sip_node.chip.mapping.strided_block import StridedBlock
from sip_node.chip.memory.access import Access
from sip_node.chip.memory.memory_channels import AccessChannels, Shares
from sip_node.kernel import exact
from sip_node.kernel.containers.int_array import IntArray

_MANY_SHARES = 4096
"""Shares that a striping keeps, since accesses repeat themselves."""


class StripedShares(Shares):
    """Bytes of an access on each channel; `nbytes` are those on the needed ones."""

    def __init__(self, each: Sequence[int]) -> None:
        super().__init__(each)
        self.nbytes = IntArray()
        for share in each:
            if share:
                self.nbytes.append(share)


class Striping:
    """The map of offsets to `count` channels, which is that of all slices of a machine."""

    def __init__(self, burst_bytes: int, count: int) -> None:
        self._burst_bytes, self._count = burst_bytes, count
        self.period_bytes = burst_bytes * count
        self._kept: dict[tuple[int, int, StridedBlock | None, int], StripedShares] = {}
        # The shares of the last access without rows, which most accesses repeat.
        self._offset: int = 0
        self._nbytes: int = 0
        self._shares = StripedShares(())

    def shares(
        self, offset: int, nbytes: int, rows: StridedBlock | None, begin: int
    ) -> StripedShares:
        """The shares of a range at `offset`, or of the packed bytes from `begin` on of rows."""
        offset %= self.period_bytes
        if rows is None:
            if offset != self._offset or nbytes != self._nbytes:
                self._shares = self._kept_shares(offset, nbytes, None, 0)
                self._offset, self._nbytes = offset, nbytes
            return self._shares
        return self._kept_shares(offset, nbytes, rows, begin)

    def _kept_shares(
        self, offset: int, nbytes: int, rows: StridedBlock | None, begin: int
    ) -> StripedShares:
        key = (offset, nbytes, rows, begin)
        shares = self._kept.get(key)
        if shares is None:
            if len(self._kept) == _MANY_SHARES:
                self._kept.clear()
            shares = self._kept[key] = StripedShares(self._bytes_of(offset, nbytes, rows, begin))
        return shares

    def _bytes_of(
        self, offset: int, nbytes: int, rows: StridedBlock | None, begin: int
    ) -> list[int]:
        each = IntArray()
        for _ in range(self._count):
            each.append(0)
        if rows is None:
            self._add_range(each, offset, nbytes)
        else:
            for start, length, row_bytes in rows.runs(begin, nbytes):
                for index in range(length):
                    self._add_range(each, offset + start + index * rows.pitch, row_bytes)
        return [each.values[index] for index in range(self._count)]

    def _add_range(self, each: IntArray, offset: int, nbytes: int) -> None:
        """Add the bytes of a range to those on each channel."""
        burst_bytes, count = self._burst_bytes, self._count
        # Whole rounds over all channels take the same everywhere; only the rest is walked.
        rounds = nbytes // self.period_bytes
        if rounds:
            for index in range(count):
                each.values[index] += rounds * burst_bytes
            nbytes -= rounds * self.period_bytes
        while nbytes:
            piece = min(burst_bytes - offset % burst_bytes, nbytes)
            each.values[offset // burst_bytes % count] += piece
            offset += piece
            nbytes -= piece


class PseudoChannels(AccessChannels):
    """The calendars of one slice. Effective bandwidth = channels x their bandwidth x efficiency.

    An access occupies every channel that it touches for its bytes there; its data are complete
    when the last of them has served it. Reads and writes share a channel; a channel that changes
    direction is ready again the switch penalty after its last access.

    A derived class may replace the methods of `MemoryChannels`, which is tested once.
    """

    def __init__(self, name: str, topology: Topology) -> None:
        # The efficiency stands for activations, bank conflicts and refresh, which this model leaves
        # out.
        bw_gbs = topology.hbm.pc_bw_gbs * topology.cube.hbm_ctrl.efficiency
        count = self.count = topology.hbm.num_pcs
        super().__init__([Server(f"{name}.pc{index}", bw_gbs) for index in range(count)])
        self.burst_bytes = topology.hbm.burst_bytes
        self._striping = _striping(self.burst_bytes, count)
        self._penalty_ps = ps_from_ns(topology.cube.hbm_ctrl.switch_penalty_ns)
        # Of each channel whether the last access is a write; -1 before the first access, which pays
        # no penalty.
        self.wrote = IntArray()
        for _ in self.channels:
            self.wrote.append(-1)

    def is_replaced(self) -> bool:
        """Whether the class of this or of a channel is one of the user."""
        return type(self) is not PseudoChannels or not all(
            isinstance(each, FifoServer) and not each.is_replaced for each in self.channels
        )

    def split(self, access: Access) -> StripedShares:
        """The bytes of an access on each channel."""
        return self._striping.shares(access.offset, access.nbytes, access.rows, access.begin)

    def free_ps(self, index: int) -> int:
        """The time at which a channel is free."""
        channel = self.channels[index]
        return channel.free_ps

    def serve(
        self,
        shares: Shares,
        head_ps: int,
        tail_ps: int,
        writes: bool,  # noqa: FBT001 - the direction of an access, as in `Access`
        waited_ps: int,
    ) -> int:
        """See `AccessChannels.serve`."""
        assert isinstance(shares, StripedShares)
        striped, needed, wrote = shares, shares.needed, self.wrote
        first_ps, start_ps, end_ps = exact.NEVER_PS, head_ps, tail_ps
        # Comparisons instead of min() and max(): this loop runs for every channel of every packet.
        for place in range(needed.size):
            index = needed.values[place]
            channel = self.channels[index]
            if wrote.values[index] != writes:
                if wrote.values[index] != -1:
                    # One data bus serves both directions, and carries nothing while it turns (tWTR,
                    # tRTW of JEDEC).
                    channel.free_ps += self._penalty_ps
                wrote.values[index] = writes
            if waited_ps and channel.bins is not None:
                channel.bins.waited_ps = waited_ps
            begin_ps = channel.serve(head_ps, tail_ps, striped.nbytes.values[place])
            # The slowest channel decides: a packet leaves when all of its bursts are there.
            if begin_ps < first_ps:  # noqa: PLR1730
                first_ps = begin_ps
            if begin_ps > start_ps:  # noqa: PLR1730
                start_ps = begin_ps
            if channel.tail_ps > end_ps:  # noqa: PLR1730
                end_ps = channel.tail_ps
        self.start_ps, self.end_ps = start_ps, end_ps
        return first_ps

    def shares_of(self, access: Access) -> Sequence[int]:
        """The bytes of an access on each channel."""
        if access.rows is None:
            return self.shares(access.offset, access.nbytes)
        return self.shares_of_rows(access.offset, access.rows, access.begin, access.nbytes)

    def shares(self, offset: int, nbytes: int) -> Sequence[int]:
        """Bytes of [offset, offset + nbytes) on each channel."""
        return self._striping.shares(offset, nbytes, None, 0).each

    def shares_of_rows(
        self, offset: int, rows: StridedBlock, begin: int, nbytes: int
    ) -> Sequence[int]:
        """Bytes on each channel of the packed bytes [begin, begin + nbytes) of rows at `offset`."""
        return self._striping.shares(offset, nbytes, rows, begin).each

    def reserve(
        self,
        shares: Sequence[int],
        head_ps: int,
        tail_ps: int,
        writes: bool,  # noqa: FBT001 - the direction of an access, as in `Access`
    ) -> tuple[int, int, int]:
        """(begin of the first channel, begin of the last one, end); see `MemoryChannels`."""
        first_ps = self.serve(StripedShares(shares), head_ps, tail_ps, writes, 0)
        return first_ps, self.start_ps, self.end_ps


@cache
def _striping(burst_bytes: int, count: int) -> Striping:
    return Striping(burst_bytes, count)
