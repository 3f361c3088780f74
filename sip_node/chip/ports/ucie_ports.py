"""The UCIe ports of a SIP: the boundary between its fabric and the neighbouring SIPs."""

from collections.abc import Iterator, Mapping

from runtime.model.jitter import Jitter, link_jitter_ns
from sip_node.chip.bounds.command_bounds import AnswerLink
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric import approach
from sip_node.chip.fabric import packet as packets
from sip_node.chip.fabric.clocked.stalled import StalledPacket
from sip_node.chip.fabric.hops import Hops
from sip_node.chip.fabric.packet import FabricTransfer, Packet
from sip_node.chip.fabric.server import Server
from sip_node.chip.ports.link_egress import LinkEgress, LinkEnd
from sip_node.chip.ports.run_block import RunBlock
from sip_node.chip.records.packet_train import PORT, PacketTrain, QueueTimes
from sip_node.kernel.component import Component
from sip_node.kernel.outlet import Outlet
from sip_node.pdes.inbox import Inbox

_SWITCHED = 0


class UciePorts(Component):
    """The endpoint at the IO NoC for packets to other SIPs, and the origin of packets from them.

    A packet whose head is at the IO NoC reserves the link of the next hop and enters the inbox of
    the neighbour, timed when its head is at the neighbour's IO NoC. With a switch a SIP has one
    port for all it sends, and packets from several SIPs meet in the switch's port to their target;
    that port is served here, at the receiver, in the total order of arrivals.
    """

    def __init__(self, chip: ChipContext) -> None:
        self.join(chip.engine)
        self._chip, self._sip = chip, chip.sip
        self._outlet = Outlet(chip.fabric, chip.graph.io_noc)
        self._send_bounds, self._senders = chip.send_bounds, chip.send_bounds.in_flight
        sips, ports = chip.sips, chip.components.links
        links = {other: sips.link(chip.sip, other) for other in sips.neighbours(chip.sip)}
        switched, port = sips.is_switched, ports["ucie"]
        # To a switch a SIP has one link, so packets for all targets share its bandwidth.
        switch_gbs = sips.port_gbs(chip.sip, "io.ucie.switch")
        up = port("ucie.switch", switch_gbs)
        jitters = {each: _jitter(chip, each) for each in sips.ports(chip.sip)}
        self._egresses = {
            other: LinkEgress(
                chip.engine,
                chip.log,
                chip.sip,
                up if switched else port(link.port.removeprefix("io."), link.bw_gbs),
                # A channel's lookahead is the least of these; see `Partition`.
                sips.entry_ps(chip.sip, other),
                jitters[link.port],
            )
            for other, link in links.items()
        }
        self._egress_to = [
            None if target == chip.sip else self._egresses[hop]
            for target, hop in enumerate(sips.next_hops(chip.sip))
        ]
        # The port of the switch is modelled at its receiver: all packets that queue there are for
        # this SIP, so no two LPs share its state.
        self._switch_port = ports["switch"]("switch.out", switch_gbs) if switched else None
        # In a run with records: of the transfers with packets to come, those in this SIP.
        self._trains: dict[FabricTransfer, PacketTrain] | None = None
        if chip.loads is not None:
            self._trains = {}
            for each in self.servers:
                chip.loads.watch("port", each)
        self._inbox = PortInbox(self)

    @property
    def ports(self) -> tuple[Server, ...]:
        """The UCIe ports to other SIPs."""
        return tuple({id(each.port): each.port for each in self._egresses.values()}.values())

    @property
    def servers(self) -> tuple[Server, ...]:
        """The ports to other SIPs, and that of a switch which leads here."""
        return self.ports if self._switch_port is None else (*self.ports, self._switch_port)

    @property
    def inbox(self) -> Inbox:
        """The packets that neighbours have sent, and that have not come yet."""
        return self._inbox

    @property
    def egresses(self) -> Mapping[int, LinkEgress]:
        """The link to each neighbour."""
        return self._egresses

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
        """Let packets that are certain to leave enter their messages before they cross."""
        chip, fabric = self._chip, self._chip.fabric
        # With credits, nothing is foreseen.
        if isinstance(fabric, Hops) and approach.watch(fabric.lookout, self._egress_to):
            chip.send_bounds.look_out(
                fabric.lookout, lambda pe: fabric.approach(chip.graph.pe(*pe)), _answer_links(chip)
            )

    def connect(self, ends: Mapping[int, LinkEnd]) -> None:
        """Connect the link to each neighbour with its other end."""
        for neighbour, end in ends.items():
            self._egresses[neighbour].connect(end)

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """A packet for another SIP is at the IO NoC."""
        self.cross(packet, tail_ps)

    def cross(self, packet: Packet, tail_ps: int) -> int:
        """Send a packet over its next link; returns the time when its tail has left."""
        sip = packet.transfer.sip
        if packet.approach is None:
            sender = self._senders[sip]
            sender.entered(packet.entrance_ps)
        egress = self._egress_to[sip]
        assert egress is not None, "the packet is for another SIP"
        return approach.cross(egress, packet, tail_ps)

    @property
    def end(self) -> LinkEnd:
        """The end of the links from the neighbours of this LP."""
        return PortEnd(self)

    def arrive_run(self, source: int, transfer: FabricTransfer, run: RunBlock) -> str:
        """Packets of a transfer come from a neighbour on another LP.

        Returns the rule of the link that one of them breaks, or nothing.
        """
        for index in range(run.packets):
            last = run.ends and index == run.packets - 1
            packet = packets.new_packet(transfer, run.begin(index), run.size(index), last)
            fault = self.fault(packet, source)
            if fault:
                return fault
            self.arrive(run.head_ps(index), source, run.seq(index), run.tail_ps(index), packet)
        return ""

    def fault(self, packet: Packet, source: int) -> str:  # noqa: ARG002 - what credits limit
        """The rule of the link from a neighbour that a packet of another LP breaks, or nothing."""
        return ""

    def arrive(self, head_ps: int, source: int, seq: int, tail_ps: int, packet: Packet) -> None:
        """A packet of a neighbour is to be received at `head_ps`.

        A packet for another SIP leaves again then.
        """
        sip = packet.transfer.sip
        if sip != self._sip:
            # From now on this LP has a bound for it; before, only the promise of its channel had.
            sender = self._senders.get(sip)
            if sender is None:
                self._send_bounds.departed(sip, head_ps)
            else:
                sender.departed(head_ps)
        self._inbox.put(head_ps, source, seq, tail_ps, packet)

    def receive(self, packet: Packet, tail_ps: int, source: int) -> None:
        """The head of a packet is at our IO NoC, or at the port of the switch that leads here."""
        now_ps = self.engine.now_ps
        packet.entrance_ps, packet.came_from = now_ps, source
        if self._trains is not None:
            self._enter_train(packet, self._trains)
        if self._switch_port is None:
            self._enter(packet, tail_ps)
        else:
            self._pass_switch(packet, self._switch_port, tail_ps)

    def _pass_switch(self, packet: Packet, port: Server, tail_ps: int) -> None:
        now_ps = self.engine.now_ps
        # Events of arrivals are in their total order, so the order at the port is the same for any
        # number of processes.
        start_ps = port.serve(now_ps, tail_ps, packet.size)
        if packet.train is not None:
            waited_ps = packet.train.at_link(PORT, now_ps, start_ps, port.tail_ps)
            if waited_ps:
                packet.queued(waited_ps, port.name)
        self.later(start_ps, _SWITCHED, (packet, port.tail_ps))

    def proceed(self, step: int, subject: tuple[Packet, int]) -> None:  # noqa: ARG002 - it has one
        """A packet has passed the port of the switch."""
        packet, tail_ps = subject
        self._enter(packet, tail_ps)

    def _enter_train(self, packet: Packet, trains: dict[FabricTransfer, PacketTrain]) -> None:
        """Begin the train of a packet in this SIP, to which its waits from now on belong."""
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
                owner = f"sip {self._chip.sip}"
                yield StalledPacket(f"{owner} {buffer}", packet, f"{owner} {waits_for}")

    def check_at_rest(self) -> None:
        """Check after a run that nothing waits: here every packet crosses when it comes."""

    def _enter(self, packet: Packet, tail_ps: int) -> None:
        if packet.transfer.sip == self._sip:
            self._outlet.send(packet, tail_ps)
        else:
            self.accept(packet, tail_ps)


class PortEnd(LinkEnd):
    """The end of the links from the neighbours of one LP."""

    def __init__(self, ports: UciePorts) -> None:
        super().__init__(takes_early=False)
        self._ports = ports

    def arrive(self, head_ps: int, source: int, seq: int, tail_ps: int, packet: Packet) -> None:
        """See `LinkEnd.arrive`."""
        self._ports.arrive(head_ps, source, seq, tail_ps, packet)


class PortInbox(Inbox):
    """The inbox of ports."""

    def __init__(self, ports: UciePorts) -> None:
        super().__init__(ports.engine)
        self._ports = ports

    def receive(self, packet: Packet, tail_ps: int, source: int) -> None:
        """See `Inbox.receive`."""
        self._ports.receive(packet, tail_ps, source)


def _jitter(chip: ChipContext, port: str) -> Jitter | None:
    bound_ns = link_jitter_ns(chip.topology, chip.sip, port)
    return Jitter(chip.topology, f"sip{chip.sip}.{port}", bound_ns) if bound_ns else None


def _answer_links(chip: ChipContext) -> dict[int, AnswerLink]:
    """The last link that answers of a cube share with its packets to other SIPs, by cube."""
    graph, links = chip.graph, dict[int, AnswerLink]()
    for cube in range(chip.topology.cubes):
        if cube in graph.down.cubes:
            continue
        stages = chip.routes.route(graph.m_cpu(cube), graph.io_cpu).stages
        *_, to_noc = chip.routes.route(graph.m_cpu(cube), graph.io_noc).stages
        last = to_noc.link
        server = chip.fabric.servers[last]
        # A class of `impl:` need not be a FIFO.
        if type(server) is not Server or last not in {stage.link for stage in stages}:
            continue
        # From the link on, an answer takes at least the delays of the links behind it.
        after_ps = 0
        for stage in reversed(stages):
            after_ps += stage.post_ps
            if stage.link == last:
                break
            after_ps += stage.pre_ps
        links[cube] = AnswerLink(server, after_ps)
    return links
