"""The UCIe ports of a SIP: the boundary between its fabric and the neighbouring SIPs."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.simtime import ps_from_ns
from runtime.wire.packets import PacketRun
from sip_node.chip.arriving_transfers import packets_of
from sip_node.chip.command_bounds import AnswerLink
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import FabricTransfer, Packet
from sip_node.chip.fabric.packet_train import PORT, PacketTrain, QueueTimes
from sip_node.chip.fabric.server import Server
from sip_node.chip.fabric.stalled import StalledPacket
from sip_node.chip.link_egress import LinkEgress, LinkEnd, ReferenceLinkEgress
from sip_node.pdes.inbox import Inbox, ReferenceInbox


class ReferenceUciePorts:
    """The endpoint at the IO NoC for packets to other SIPs, and the origin of packets from them.

    A packet whose head is at the IO NoC reserves the link of the next hop and enters the inbox of
    the neighbour, timed when its head is at the neighbour's IO NoC. With a switch a SIP has one
    port for all it sends, and packets from several SIPs meet in the switch's port to their target;
    that port is served here, at the receiver, in the total order of arrivals.
    """

    _link_egress, _inbox_of = ReferenceLinkEgress, ReferenceInbox[Packet]

    def __init__(self, chip: ChipContext) -> None:
        self._chip = chip
        sips, ports = chip.sips, chip.components.links
        links = {other: sips.link(chip.sip, other) for other in sips.neighbours(chip.sip)}
        noc_ps = ps_from_ns(chip.topology.sip.io_chiplet.noc.overhead_ns)
        switched = chip.topology.system.sips.fabric == "switch"
        bw_gbs = chip.topology.ucie.bw_gbs
        port = ports["ucie"]
        up = port("ucie.switch", bw_gbs)
        self._egresses = {
            other: self._link_egress(
                chip.engine,
                chip.log,
                chip.sip,
                up if switched else port(link.port.removeprefix("io."), link.bw_gbs),
                # A channel's lookahead is the least of these; see `Partition`.
                link.latency_ps + noc_ps,
            )
            for other, link in links.items()
        }
        self._egress_to = [
            None if target == chip.sip else self._egresses[sips.next_hop(chip.sip, target)]
            for target in range(sips.sips)
        ]
        self._switch_port = ports["switch"]("switch.out", bw_gbs) if switched else None
        # In a run with records: of the transfers with packets to come, those in this SIP.
        self._trains: dict[FabricTransfer, PacketTrain] | None = None
        if chip.loads is not None:
            self._trains = {}
            for each in (*self.ports, self._switch_port):
                if each is not None:
                    chip.loads.watch("port", each)
        self._inbox = self._inbox_of(chip.engine, self.receive)

    @property
    def ports(self) -> tuple[Server, ...]:
        """The UCIe ports to other SIPs."""
        return tuple({id(each.port): each.port for each in self._egresses.values()}.values())

    @property
    def sent(self) -> int:
        """The packets and credits that have left for neighbours."""
        return sum(each.sent for each in self._egresses.values())

    @property
    def received(self) -> int:
        """The packets and credits that have come from neighbours."""
        return self._inbox.received

    def attach(self) -> None:
        """Take the packets for other SIPs from the fabric: their routes end at the IO NoC."""
        self._chip.fabric.attach(self._chip.graph.io_noc, self)

    def foresee(self) -> None:
        """Let packets that are certain to leave enter their messages before they cross.

        Only the compiled ports do.
        """

    def connect(self, ends: Mapping[int, LinkEnd]) -> None:
        """Connect the link to each neighbour with its other end."""
        for neighbour, end in ends.items():
            self._egresses[neighbour].connect(end)

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """A packet for another SIP is at the IO NoC."""
        self._cross(packet, tail_ps)

    def _cross(self, packet: Packet, tail_ps: int) -> int:
        """Send a packet over its next link; returns the time when its tail has left."""
        sip = packet.transfer.sip
        self._chip.send_bounds.entered(sip, packet.entrance_ps)
        egress = self._egress_to[sip]
        assert egress is not None, "the packet is for another SIP"
        return egress.cross(packet, tail_ps)

    @property
    def end(self) -> LinkEnd:
        """The end of the links from the neighbours of this LP."""
        return self

    def arrive_run(self, source: int, transfer: FabricTransfer, run: PacketRun) -> str:
        """Packets of a transfer come from a neighbour on another LP.

        Returns the rule of the link that one of them breaks, or nothing.
        """
        for head_ps, seq, tail_ps, packet in packets_of(transfer, run):
            fault = self.fault(packet, source)
            if fault:
                return fault
            self.arrive(head_ps, source, seq, tail_ps, packet)
        return ""

    def fault(self, packet: Packet, source: int) -> str:  # noqa: ARG002 - what credits limit
        """The rule of the link from a neighbour that a packet of another LP breaks, or nothing."""
        return ""

    def arrive(self, head_ps: int, source: int, seq: int, tail_ps: int, packet: Packet) -> None:
        """A packet of a neighbour is to be received at `head_ps`.

        A packet for another SIP leaves again then.
        """
        if packet.transfer.sip != self._chip.sip:
            # From now on this LP has a bound for it; before, only the promise of its channel had.
            self._chip.send_bounds.departed(packet.transfer.sip, head_ps)
        self._inbox.put(head_ps, source, seq, tail_ps, packet)

    def receive(self, packet: Packet, tail_ps: int, source: int) -> None:
        """The head of a packet is at our IO NoC, or at the port of the switch that leads here."""
        engine = self._chip.engine
        packet.entrance_ps, packet.came_from = engine.now_ps, source
        if self._trains is not None:
            self._enter_train(packet, self._trains)
        port = self._switch_port
        if port is None:
            self._enter(packet, tail_ps)
            return
        start_ps, tail_ps = port.reserve(engine.now_ps, tail_ps, packet.size)
        if packet.train is not None:
            waited_ps = packet.train.at_link(PORT, engine.now_ps, start_ps, tail_ps)
            if waited_ps:
                packet.queued(waited_ps, port.name)
        engine.at(start_ps, self._enter, packet, tail_ps)

    @staticmethod
    def _enter_train(packet: Packet, trains: dict[FabricTransfer, PacketTrain]) -> None:
        """What a packet queues from now on belongs to this SIP."""
        transfer = packet.transfer
        train = trains.pop(transfer, None)
        if train is None:
            train = PacketTrain(QueueTimes())
        if not packet.last:
            trains[transfer] = train
        packet.enter(train)

    def stalled(self) -> Iterator[StalledPacket]:
        """The packets that stand still at the end of a run, with buffers named by their SIP."""
        for buffer, packet, waits_for in self._chip.fabric.stalled():
            if buffer:
                where = f"sip {self._chip.sip}"
                yield StalledPacket(f"{where} {buffer}", packet, f"{where} {waits_for}")

    def check_at_rest(self) -> None:
        """At the end of a run nothing waits here: every packet has crossed when it came."""

    def _enter(self, packet: Packet, tail_ps: int) -> None:
        if packet.transfer.sip == self._chip.sip:
            self._chip.fabric.send(packet, self._chip.graph.io_noc, tail_ps)
        else:
            self.accept(packet, tail_ps)


def _answer_links(chip: ChipContext) -> dict[int, AnswerLink]:
    """By cube, the last link that its answers share with its packets to other SIPs, if they do."""
    graph, links = chip.graph, dict[int, AnswerLink]()
    for cube in range(chip.topology.cubes):
        stages = chip.routes.route(graph.m_cpu(cube), graph.io_cpu).stages
        last = chip.routes.route(graph.m_cpu(cube), graph.io_noc).stages[-1].link
        server = chip.fabric.servers[last]
        # A class of `impl:` need not be a FIFO.
        if type(server) is not Server or last not in {stage.link for stage in stages}:
            continue
        after_ps = 0
        for stage in reversed(stages):
            after_ps += stage.post_ps
            if stage.link == last:
                break
            after_ps += stage.pre_ps
        links[cube] = AnswerLink(server, after_ps)
    return links


if TYPE_CHECKING or not IS_COMPILED:
    UciePorts = ReferenceUciePorts
else:
    from sip_node.compiled.crossings import Crossings

    class UciePorts(Crossings, ReferenceUciePorts):
        """The reference, through which packets pass in C."""

        _link_egress, _inbox_of = LinkEgress, Inbox

        def __init__(self, chip: ChipContext) -> None:
            ReferenceUciePorts.__init__(self, chip)
            self.bind(
                chip.engine,
                chip.fabric,
                chip.graph.io_noc,
                chip.sip,
                chip.send_bounds,
                self._egress_to,
                self._switch_port,
                self._inbox,
                self._trains,
            )

        def foresee(self) -> None:
            """See `ReferenceUciePorts.foresee`."""
            chip = self._chip
            lookout = Crossings.foresee(self)
            if lookout is not None:
                approach = chip.fabric.approach
                chip.send_bounds.look_out(
                    lookout, lambda pe: approach(chip.graph.pe(*pe)), _answer_links(chip)
                )

        @property
        def end(self) -> LinkEnd:
            """The inbox, which other links in C reach without a call of Python."""
            return self._inbox
