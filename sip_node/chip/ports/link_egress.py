"""The sending end of the UCIe link from a SIP to a neighbour: its port, its latency, its order."""

from runtime.core.run_tables import NONE
from runtime.core.trace import OpRecord
from runtime.model.jitter import ENGINE, Jitter
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.fabric.server import FifoServer, Server
from sip_node.chip.records.op_log import OpLog
from sip_node.chip.records.packet_train import PacketTrain, QueueTimes
from sip_node.pdes.engine import Engine

_NAMES = {kind: kind.name.lower() for kind in Kind}
"""The names of records; that of an Enum is a function in Python."""


class LinkEnd:
    """The other end of a link: a SIP of this LP, or the messages to another LP.

    `takes_early` is whether it takes packets before they cross: it only makes messages of them.
    """

    def __init__(self, *, takes_early: bool) -> None:
        self.takes_early = takes_early

    def arrive(self, head_ps: int, source: int, seq: int, tail_ps: int, packet: Packet) -> None:  # noqa: ARG002
        """Take a packet whose head arrives there at `head_ps`, its tail at `tail_ps`.

        It comes from SIP `source`, and is the `seq`th on the link.
        """
        raise AssertionError("a packet crosses a link that leads nowhere")


class OpenRecord:
    """A transfer of which some packets have crossed.

    The first one came to the port at `requested_ps`. In a run with records, `train` are its packets
    at the port.
    """

    def __init__(self, start_ps: int, requested_ps: int, train: PacketTrain | None) -> None:
        self.start_ps, self.requested_ps, self.train = start_ps, requested_ps, train
        self.nbytes = 0


class LinkEgress:
    """Serialises the packets of SIP `source` to one neighbour.

    `latency_ps` is the time from the departure of a head to its arrival at the IO NoC of the
    neighbour. Several links may share one `port`, and its `jitter`: packets come to the port later
    by that. So their order stays, and no packet is earlier than without it.
    """

    def __init__(
        self,
        engine: Engine,
        log: OpLog,
        source: int,
        port: Server,
        latency_ps: int,
        jitter: Jitter | None = None,
    ) -> None:
        self.engine, self._log, self._source = engine, log, source
        self.port, self.latency_ps, self.jitter = port, latency_ps, jitter
        # When the last packet would have come to the port, but for what it queued there.
        self._head_ps = 0
        self.end = LinkEnd(takes_early=False)
        # The port as it is after the last crossing that was foreseen; see approach.py.
        self.ahead: FifoServer | None = None
        # Of the transfers with packets to come.
        self._begun: dict[FabricTransfer, OpenRecord] = {}
        self.sent = 0

    def connect(self, end: LinkEnd) -> None:
        """Give all that crosses to `end`."""
        self.end = end

    def cross(self, packet: Packet, tail_ps: int) -> int:
        """Send a packet whose head is here now; returns the time when its tail has left."""
        start_ps = self.serve(packet, tail_ps)
        self.depart(packet, start_ps, self.port.tail_ps)
        return self.port.tail_ps

    def notify(self, packet: Packet) -> None:
        """Send a packet that occupies no bandwidth."""
        # The latency of the link, so that also a credit is later than its cause by the lookahead.
        self.depart(packet, self.engine.now_ps, self.engine.now_ps)

    def serve(self, packet: Packet, tail_ps: int) -> int:
        """The start of a packet at the port, whose head is here now; its tail is the port's."""
        # Cut-through: the head leaves when the port is free, the tail follows at its bandwidth.
        head_ps = self._head_ps = self.engine.now_ps
        if self.jitter is not None:
            head_ps = self._late_ps(head_ps, self.jitter)
        start_ps = self.port.serve(head_ps, tail_ps, packet.size)
        self._record(packet, start_ps, self.port.tail_ps)
        return start_ps

    def _late_ps(self, head_ps: int, jitter: Jitter) -> int:
        """The time at which a packet comes to the port, whose head is here at `head_ps`."""
        late_ps, ready_ps = head_ps + jitter.next_ps(), max(head_ps, self.port.free_ps)
        # Behind other packets, it would have waited for as long.
        if late_ps > ready_ps:
            self._log.add(OpRecord(ENGINE, self.port.name, ready_ps, late_ps))
            self._head_ps = head_ps + late_ps - ready_ps
        return late_ps

    def depart(self, packet: Packet, head_ps: int, tail_ps: int) -> None:
        """Give a packet that leaves the port, with its number, to the other end."""
        # Part of the total order of arrivals: (time, source, seq).
        seq, latency_ps = self.sent, self.latency_ps
        self.sent = seq + 1
        self.end.arrive(head_ps + latency_ps, self._source, seq, tail_ps + latency_ps, packet)

    def _record(self, packet: Packet, start_ps: int, left_ps: int) -> None:
        """Add the record of a transfer to the op log with its last packet."""
        transfer = packet.transfer
        begun = self._begun.get(transfer)
        if begun is None:
            train = None if packet.train is None else PacketTrain(QueueTimes())
            begun = OpenRecord(start_ps, self.engine.now_ps, train)
            if not packet.last:
                self._begun[transfer] = begun
        elif packet.last:
            del self._begun[transfer]
        begun.nbytes += packet.size
        if begun.train is not None:
            self._note(begun.train, packet, start_ps, left_ps)
        if packet.last:
            self._log.add_crossing(
                engine=self.port.name,
                name=_NAMES[transfer.kind],
                start_ps=begun.start_ps,
                end_ps=left_ps,
                address=transfer.address,
                nbytes=begun.nbytes,
                requested_ps=begun.requested_ps,
                times=None if begun.train is None else begun.train.times,
                # Of a transfer that passes this SIP, it is a step of another one.
                step=transfer.step if transfer.source_sip == self._source else NONE,
            )

    def _note(self, train: PacketTrain, packet: Packet, start_ps: int, left_ps: int) -> None:
        """Add what a packet has queued here to what it has queued in this SIP before."""
        waited_ps = train.at_link(0, self._head_ps, start_ps, left_ps)
        if waited_ps:
            packet.queued(waited_ps, self.port.name)
        assert packet.train is not None, "a packet enters a SIP with a train, or starts with one"
        train.times.at_links(packet.link_ps, packet.longest_link)
        train.times.at_memory(packet.train.times.memory_ps)
