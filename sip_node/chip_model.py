"""The chips of one LP as the loop sees them: one engine, an inbox per SIP, and what they know about their next message."""

from collections.abc import Iterable, Mapping, Sequence

from runtime.hardware.routing import SipFabric
from runtime.wire.messages import Message
from sip_node.boundary import lookahead_ps
from sip_node.chip import Blueprint, Chip
from sip_node.engine import Engine
from sip_node.op_log import OpLog
from sip_node.pdes.sync import Sync


class Partition:
    """Which LP holds which SIP, and the channels that this makes between LPs."""

    def __init__(self, sips_of_lp: Sequence[Sequence[int]], fabric: SipFabric, noc_overhead_ns: float) -> None:
        self.sips_of_lp = sips_of_lp
        self.lp_of = {sip: lp for lp, sips in enumerate(sips_of_lp) for sip in sips}
        self._links = [(link.source, link.target, lookahead_ps(noc_overhead_ns, link.latency_ps)) for link in fabric.links]

    def channels_out(self, lp: int) -> dict[int, int]:
        """Peer LP -> lookahead in ps: the least of the links that share the channel."""
        return self._least((self.lp_of[b], ps) for a, b, ps in self._links if self.lp_of[a] == lp != self.lp_of[b])

    def channels_in(self, lp: int) -> dict[int, int]:
        """The same for the channels that lead here."""
        return self._least((self.lp_of[a], ps) for a, b, ps in self._links if self.lp_of[b] == lp != self.lp_of[a])

    def speakers(self, lp: int) -> dict[int, tuple[int, ...]]:
        """Peer LP -> the SIPs of this LP that have a link there."""
        return {
            peer: tuple(sorted({a for a, b, _ in self._links if self.lp_of[a] == lp and self.lp_of[b] == peer}))
            for peer in self.channels_out(lp)
        }

    @staticmethod
    def _least(found: Iterable[tuple[int, int]]) -> dict[int, int]:
        least: dict[int, int] = {}
        for peer, ps in found:
            least[peer] = min(ps, least.get(peer, ps))
        return least


class ChipModel:
    """The `Model` of an LP with chips on it."""

    def __init__(self, lp: int, partition: Partition, sync: Sync, plan: Blueprint, logs: Mapping[int, OpLog]) -> None:
        self.engine = Engine()
        self._sync, self._lp_of = sync, partition.lp_of
        self._speakers = partition.speakers(lp)
        self.chips = {sip: Chip(plan, sip, self.engine, logs[sip], self._post) for sip in partition.sips_of_lp[lp]}

    def next_ps(self) -> int:
        """The time of the earliest event."""
        return self.engine.next_ps()

    def run_before(self, bound_ps: int) -> int:
        """Execute every event before `bound_ps`."""
        return self.engine.run_before(bound_ps)

    def deliver(self, message: Message) -> None:
        """Put a message into the inbox of its SIP."""
        self.chips[message.target].inbox.put(message)

    def earliest_send_ps(self, base_ps: int) -> dict[int, int]:
        """Per peer LP, the earliest any of our SIPs with a link there can send."""
        earliest = {sip: chip.outlook.earliest_send_ps(base_ps) for sip, chip in self.chips.items()}
        return {peer: min(earliest[sip] for sip in sips) for peer, sips in self._speakers.items()}

    def _post(self, message: Message) -> None:
        if message.target in self.chips:
            self.deliver(message)
        else:
            self._sync.post(self._lp_of[message.target], message)
