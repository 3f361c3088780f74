"""The sending end of the UCIe link from a SIP to a neighbour: its port, its latency, its order."""

from collections.abc import Callable

from runtime.core.trace import OpRecord
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.fabric.server import Server
from sip_node.chip.op_log import OpLog
from sip_node.pdes.engine import Engine

LinkEnd = Callable[[int, int, int, int, Packet], None]
"""The other end of a link. It takes (head_ps, source, seq, tail_ps, packet): when the head and the
tail of a packet arrive there, the SIP which it comes from, and its number on the link.
"""


class LinkEgress:
    """Serialises the packets of SIP `source` to one neighbour.

    `latency_ps` is the time from the departure of a head to its arrival at the IO NoC of the
    neighbour. Several links may share one `port`.
    """

    def __init__(
        self, engine: Engine, log: OpLog, source: int, port: Server, latency_ps: int
    ) -> None:
        self._engine, self._log, self._source = engine, log, source
        self.port, self.latency_ps = port, latency_ps
        self._end: LinkEnd = _unconnected
        self.sent = 0

    def connect(self, end: LinkEnd) -> None:
        """Give all that crosses to `end`."""
        self._end = end

    def cross(self, packet: Packet, tail_ps: int) -> int:
        """Send a packet whose head is here now; returns the time when its tail has left."""
        # Cut-through: the head leaves when the port is free, the tail follows at its bandwidth.
        start_ps, left_ps = self.port.reserve(self._engine.now_ps, tail_ps, packet.size)
        self._log.add(
            OpRecord(
                engine=self.port.name,
                name=packet.transfer.kind.name.lower(),
                start_ps=start_ps,
                end_ps=left_ps,
                address=packet.address,
                nbytes=packet.size,
            )
        )
        self._send(packet, start_ps, left_ps)
        return left_ps

    def notify(self, packet: Packet) -> None:
        """Send a packet that occupies no bandwidth."""
        now_ps = self._engine.now_ps
        self._send(packet, now_ps, now_ps)

    def _send(self, packet: Packet, head_ps: int, tail_ps: int) -> None:
        # Part of the total order of arrivals: (time, source, seq).
        seq, latency_ps = self.sent, self.latency_ps
        self.sent = seq + 1
        self._end(head_ps + latency_ps, self._source, seq, tail_ps + latency_ps, packet)


def _unconnected(*_crossing: object) -> None:
    raise AssertionError("a packet crosses a link that leads nowhere")
