"""An HBM slice: pseudo channels behind one controller. An address selects its channel by burst striping."""

from runtime.hardware.topology import Topology
from runtime.simtime import ps_from_ns
from sip_node.components.server import Server


class PseudoChannels:
    """The calendars of one slice. Effective bandwidth = pseudo channels x their bandwidth x efficiency.

    Consecutive bursts lie on consecutive channels. An access occupies each channel it touches for its bytes there; it starts
    when all of them are its own. Reads and writes share a channel; one that changes direction is ready again the switch
    penalty after its last access.
    """

    def __init__(self, name: str, topology: Topology) -> None:
        self._burst_bytes = topology.hbm.burst_bytes
        bw_gbs = topology.hbm.pc_bw_gbs * topology.cube.hbm_ctrl.efficiency
        self.channels = [Server(f"{name}.pc{index}", bw_gbs) for index in range(topology.hbm.num_pcs)]
        self._penalty_ps = ps_from_ns(topology.cube.hbm_ctrl.switch_penalty_ns)
        self._wrote: list[bool | None] = [None] * topology.hbm.num_pcs

    def serve(self, offset: int, nbytes: int, head_ps: int, tail_ps: int, writes: bool) -> tuple[int, int]:  # noqa: FBT001
        """(start, tail) of an access to `nbytes` at `offset` whose request or data is there from `head_ps` to `tail_ps`."""
        start_ps, done_ps = head_ps, tail_ps
        for index, share in enumerate(self.shares(offset, nbytes)):
            if not share:
                continue
            channel = self.channels[index]
            if self._wrote[index] is (not writes):
                channel.free_ps += self._penalty_ps
            self._wrote[index] = writes
            begin, end = channel.reserve(head_ps, tail_ps, share)
            start_ps, done_ps = max(start_ps, begin), max(done_ps, end)
        return start_ps, done_ps

    def shares(self, offset: int, nbytes: int) -> list[int]:
        """Bytes of [offset, offset + nbytes) on each channel."""
        burst, count = self._burst_bytes, len(self.channels)
        rounds, rest = divmod(nbytes, burst * count)
        shares = [rounds * burst] * count
        offset += nbytes - rest
        while rest:
            piece = min(burst - offset % burst, rest)
            shares[offset // burst % count] += piece
            offset += piece
            rest -= piece
        return shares
