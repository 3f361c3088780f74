"""An HBM slice: pseudo channels behind one controller, which an address selects by burst striping.

    offset   0      256     512     768     1024 ...      burst_bytes = 256, num_pcs = 4
    channel  | pc0  | pc1   | pc2   | pc3   | pc0  ...

So an access of many bursts uses all channels at once and has the bandwidth of the slice, while rows
at a pitch of `burst_bytes x num_pcs` all lie on one channel and have the bandwidth of that.
"""

from collections.abc import Sequence
from functools import lru_cache

from runtime.core.simtime import NEVER_PS, ps_from_ns
from runtime.model.topology import Topology
from sip_node.chip.fabric.server import Server
from sip_node.chip.memory.access import Access
from sip_node.chip.strided_block import StridedBlock


class PseudoChannels:
    """The calendars of one slice. Effective bandwidth = channels x their bandwidth x efficiency.

    An access occupies every channel that it touches for its bytes there; its data are complete
    when the last of them has served it. Reads and writes share a channel; a channel that changes
    direction is ready again the switch penalty after its last access.
    """

    def __init__(self, name: str, topology: Topology) -> None:
        self._burst_bytes = topology.hbm.burst_bytes
        bw_gbs = topology.hbm.pc_bw_gbs * topology.cube.hbm_ctrl.efficiency
        self.channels = [
            Server(f"{name}.pc{index}", bw_gbs) for index in range(topology.hbm.num_pcs)
        ]
        self._penalty_ps = ps_from_ns(topology.cube.hbm_ctrl.switch_penalty_ns)
        # None before the first access, which pays no penalty.
        self._wrote: list[bool | None] = [None] * topology.hbm.num_pcs

    @property
    def striping(self) -> tuple[int, int] | None:
        """Bytes of a burst and switch penalty, with which the compiled queue does all that follows.

        None for a class derived from this one, whose methods it calls.
        """
        return (self._burst_bytes, self._penalty_ps) if type(self) is PseudoChannels else None

    def shares_of(self, access: Access) -> Sequence[int]:
        """The bytes of an access on each channel."""
        if access.rows is None:
            return self.shares(access.offset, access.nbytes)
        return self.shares_of_rows(access.offset, access.rows, access.begin, access.nbytes)

    def shares(self, offset: int, nbytes: int) -> Sequence[int]:
        """Bytes of [offset, offset + nbytes) on each channel."""
        burst, count = self._burst_bytes, len(self.channels)
        # Modulo the period of the striping: other offsets then hit the cache.
        return _shares(offset % (burst * count), nbytes, burst, count)

    def shares_of_rows(
        self, offset: int, rows: StridedBlock, begin: int, nbytes: int
    ) -> Sequence[int]:
        """Bytes on each channel of the packed bytes [begin, begin + nbytes) of rows at `offset`."""
        burst, count = self._burst_bytes, len(self.channels)
        return _shares_of_rows(offset % (burst * count), rows, begin, nbytes, burst, count)

    def reserve(
        self,
        shares: Sequence[int],
        head_ps: int,
        tail_ps: int,
        writes: bool,  # noqa: FBT001 - the direction of an access, as in `Access`
    ) -> tuple[int, int, int]:
        """(begin of the first channel, begin of the last one, end); see `MemoryChannels`."""
        first_ps, start_ps, done_ps = NEVER_PS, head_ps, tail_ps
        channels, wrote, index = self.channels, self._wrote, -1
        # Comparisons instead of min() and max(): this loop runs for every channel of every packet.
        for share in shares:
            index += 1
            if not share:
                continue
            channel = channels[index]
            if wrote[index] is not writes:
                if wrote[index] is not None:
                    channel.free_ps += self._penalty_ps
                wrote[index] = writes
            begin_ps, end_ps = channel.reserve(head_ps, tail_ps, share)
            # The slowest channel decides: a packet leaves when all of its bursts are there.
            if begin_ps < first_ps:  # noqa: PLR1730
                first_ps = begin_ps
            if begin_ps > start_ps:  # noqa: PLR1730
                start_ps = begin_ps
            if end_ps > done_ps:  # noqa: PLR1730
                done_ps = end_ps
        return first_ps, start_ps, done_ps


@lru_cache(maxsize=4096)
def _shares(offset: int, nbytes: int, burst: int, count: int) -> tuple[int, ...]:
    # Whole rounds over all channels take the same everywhere; only the rest is walked.
    rounds, rest = divmod(nbytes, burst * count)
    shares = [rounds * burst] * count
    offset += nbytes - rest
    while rest:
        piece = min(burst - offset % burst, rest)
        shares[offset // burst % count] += piece
        offset += piece
        rest -= piece
    return tuple(shares)


@lru_cache(maxsize=4096)
def _shares_of_rows(
    offset: int, rows: StridedBlock, begin: int, nbytes: int, burst: int, count: int
) -> tuple[int, ...]:
    period = burst * count
    runs = [
        _shares_of_run((offset + start) % period, length, row_bytes, rows.pitch, burst, count)
        for start, length, row_bytes in rows.runs(begin, nbytes)
    ]
    return tuple(map(sum, zip(*runs, strict=True)))


@lru_cache(maxsize=4096)
def _shares_of_run(
    offset: int, length: int, row_bytes: int, pitch: int, burst: int, count: int
) -> tuple[int, ...]:
    """Bytes on each channel of `length` rows of `row_bytes`, `pitch` bytes apart."""
    period = burst * count
    rows = [
        _shares((offset + index * pitch) % period, row_bytes, burst, count)
        for index in range(length)
    ]
    return tuple(map(sum, zip(*rows, strict=True)))
