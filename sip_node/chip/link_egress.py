"""The sending end of the UCIe link from a SIP to a neighbour: its port, its latency, its order."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from runtime.core.trace import OpRecord
from sip_node.chip.fabric.packet import FabricTransfer, Packet
from sip_node.chip.fabric.server import Server
from sip_node.chip.op_log import OpLog
from sip_node.compiled.choice import IS_COMPILED
from sip_node.pdes.engine import Engine


class LinkEnd(Protocol):
    """The other end of a link: a SIP of this LP, or the messages to another LP."""

    def arrive(self, head_ps: int, source: int, seq: int, tail_ps: int, packet: Packet) -> None:
        """Take a packet whose head arrives there at `head_ps`, its tail at `tail_ps`.

        It comes from SIP `source`, and is the `seq`th on the link.
        """
        ...


class _OpenRecord:
    """A transfer of which some packets have crossed."""

    __slots__ = ("nbytes", "start_ps")

    def __init__(self, start_ps: int, nbytes: int) -> None:
        self.start_ps, self.nbytes = start_ps, nbytes


class ReferenceLinkEgress:
    """Serialises the packets of SIP `source` to one neighbour.

    `latency_ps` is the time from the departure of a head to its arrival at the IO NoC of the
    neighbour. Several links may share one `port`.
    """

    def __init__(
        self, engine: Engine, log: OpLog, source: int, port: Server, latency_ps: int
    ) -> None:
        self._engine, self._log, self._source = engine, log, source
        self.port, self.latency_ps = port, latency_ps
        self._arrive: Callable[[int, int, int, int, Packet], None] = _unconnected
        # Of the transfers with packets to come: the start of the first one, and their bytes.
        self._begun: dict[FabricTransfer, _OpenRecord] = {}
        self.sent = 0

    def connect(self, end: LinkEnd) -> None:
        """Give all that crosses to `end`."""
        self._arrive = end.arrive

    def cross(self, packet: Packet, tail_ps: int) -> int:
        """Send a packet whose head is here now; returns the time when its tail has left."""
        # Cut-through: the head leaves when the port is free, the tail follows at its bandwidth.
        start_ps, left_ps = self.port.reserve(self._engine.now_ps, tail_ps, packet.size)
        self._record(packet, start_ps, left_ps)
        self._send(packet, start_ps, left_ps)
        return left_ps

    def notify(self, packet: Packet) -> None:
        """Send a packet that occupies no bandwidth."""
        now_ps = self._engine.now_ps
        self._send(packet, now_ps, now_ps)

    def _record(self, packet: Packet, start_ps: int, left_ps: int) -> None:
        """Add the record of a transfer to the op log with its last packet."""
        transfer, nbytes = packet.transfer, packet.size
        begun = self._begun.get(transfer)
        if begun is not None:
            begun.nbytes += nbytes
            start_ps, nbytes = begun.start_ps, begun.nbytes
        elif not packet.last:
            self._begun[transfer] = _OpenRecord(start_ps, nbytes)
        if not packet.last:
            return
        if begun is not None:
            del self._begun[transfer]
        self._log.add(
            OpRecord(
                engine=self.port.name,
                name=transfer.kind.name.lower(),
                start_ps=start_ps,
                end_ps=left_ps,
                address=transfer.address,
                nbytes=nbytes,
            )
        )

    def _send(self, packet: Packet, head_ps: int, tail_ps: int) -> None:
        # Part of the total order of arrivals: (time, source, seq).
        seq, latency_ps = self.sent, self.latency_ps
        self.sent = seq + 1
        self._arrive(head_ps + latency_ps, self._source, seq, tail_ps + latency_ps, packet)


def _unconnected(*_crossing: object) -> None:
    raise AssertionError("a packet crosses a link that leads nowhere")


if TYPE_CHECKING or not IS_COMPILED:
    LinkEgress = ReferenceLinkEgress
else:
    from sip_node.compiled.link_egress import LinkEgress  # noqa: F401 - the name of this module
