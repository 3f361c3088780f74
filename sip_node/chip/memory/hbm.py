"""An HBM slice: pseudo channels behind one controller. An address selects its channel by burst striping."""

from collections.abc import Sequence
from functools import lru_cache

from runtime.core.simtime import ps_from_ns
from runtime.model.topology import Topology
from sip_node.chip.fabric.server import Server
from sip_node.chip.strided_block import StridedBlock


class PseudoChannels:
    """The calendars of one slice. Effective bandwidth = pseudo channels x their bandwidth x efficiency.

    Consecutive bursts lie on consecutive channels. An access occupies each channel it touches for its bytes there; it starts
    when all of them are its own. Reads and writes share a channel; one that changes direction is ready again the switch
    penalty after its last access.
    """

    def __init__(self, name: str, topology: Topology) -> None:
        self._burst_bytes = topology.hbm.burst_bytes
        bw_gbs = topology.hbm.pc_bw_gbs * topology.cube.hbm_ctrl.efficiency
        self.channels = [
            Server(f"{name}.pc{index}", bw_gbs) for index in range(topology.hbm.num_pcs)
        ]
        self._penalty_ps = ps_from_ns(topology.cube.hbm_ctrl.switch_penalty_ns)
        self._wrote: list[bool | None] = [None] * topology.hbm.num_pcs

    def serve(
        self, offset: int, nbytes: int, head_ps: int, tail_ps: int, writes: bool
    ) -> tuple[int, int]:
        """(start, tail) of an access to `nbytes` at `offset` whose request or data is there from `head_ps` to `tail_ps`."""
        return self._reserve(self.shares(offset, nbytes), head_ps, tail_ps, writes)

    def serve_rows(
        self,
        offset: int,
        rows: StridedBlock,
        part: tuple[int, int],
        head_ps: int,
        tail_ps: int,
        writes: bool,  # noqa: FBT001
    ) -> tuple[int, int]:
        """The same for `part`, (first packed byte, bytes), of rows of which the first one is at `offset`."""
        return self._reserve(self.shares_of_rows(offset, rows, *part), head_ps, tail_ps, writes)

    def shares(self, offset: int, nbytes: int) -> list[int]:
        """Bytes of [offset, offset + nbytes) on each channel."""
        return _shares(offset, nbytes, self._burst_bytes, len(self.channels))

    def shares_of_rows(self, offset: int, rows: StridedBlock, begin: int, nbytes: int) -> list[int]:
        """Bytes on each channel of the packed bytes [begin, begin + nbytes) of rows of which the first one is at `offset`."""
        burst, count = self._burst_bytes, len(self.channels)
        total = [0] * count
        for start, length, row_bytes in rows.runs(begin, nbytes):
            # The striping repeats itself, and a matrix is read in tiles that lie the same way in it.
            place = (offset + start) % (burst * count)
            total = [
                a + b
                for a, b in zip(
                    total,
                    _shares_of_run(place, length, row_bytes, rows.pitch, burst, count),
                    strict=True,
                )
            ]
        return total

    def _reserve(
        self, shares: Sequence[int], head_ps: int, tail_ps: int, writes: bool
    ) -> tuple[int, int]:
        start_ps, done_ps = head_ps, tail_ps
        for index, share in enumerate(shares):
            if not share:
                continue
            channel = self.channels[index]
            if self._wrote[index] is (not writes):
                channel.free_ps += self._penalty_ps
            self._wrote[index] = writes
            begin, end = channel.reserve(head_ps, tail_ps, share)
            start_ps, done_ps = max(start_ps, begin), max(done_ps, end)
        return start_ps, done_ps


def _shares(offset: int, nbytes: int, burst: int, count: int) -> list[int]:
    rounds, rest = divmod(nbytes, burst * count)
    shares = [rounds * burst] * count
    offset += nbytes - rest
    while rest:
        piece = min(burst - offset % burst, rest)
        shares[offset // burst % count] += piece
        offset += piece
        rest -= piece
    return shares


@lru_cache(maxsize=4096)
def _shares_of_run(
    offset: int, length: int, row_bytes: int, pitch: int, burst: int, count: int
) -> tuple[int, ...]:
    """Bytes on each channel of `length` rows of `row_bytes`, `pitch` bytes apart."""
    rows = [_shares(offset + index * pitch, row_bytes, burst, count) for index in range(length)]
    return tuple(map(sum, zip(*rows, strict=True)))
