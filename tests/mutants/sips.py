from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        name="sip-rows-before-columns",
        file="runtime/model/sip_fabric.py",
        old="if to_column != column else",
        new="if to_row == row else",
        breaks="Between SIPs a route follows columns before rows.",
        noticed_by="n.meet.grid",
    ),
    Mutant(
        name="sip-ring-tie-backwards",
        file="runtime/model/sip_fabric.py",
        old="1 if forward <= size",
        new="1 if forward < size",
        breaks="Of two equal directions round a ring a route takes that of increasing numbers.",
        noticed_by="n.meet.forward",
    ),
    Mutant(
        name="sip-crossing-one-port",
        file="runtime/model/sip_fabric.py",
        old="direct_ps = 2 * ps_from_ns",
        new="direct_ps = 1 * ps_from_ns",
        breaks="A crossing between SIPs passes two UCIe ports.",
        noticed_by="a.",
    ),
    Mutant(
        name="sip-crossing-one-wire-to-the-switch",
        file="runtime/model/sip_fabric.py",
        old=".switch.overhead_ns) + spacing_ps",
        new=".switch.overhead_ns)",
        breaks="A switch is at the end of two wires.",
        noticed_by="a.",
    ),
    Mutant(
        name="sip-port-store-and-forward",
        file="sip_node/chip/ports/link_egress.py",
        old="self.port.serve(head_ps, tail_ps, packet.size)",
        new="self.port.serve(tail_ps, tail_ps, packet.size)",
        breaks="Switching between SIPs is cut-through.",
        noticed_by="a.",
    ),
    Mutant(
        name="sip-crossing-shrinks-packets",
        file="sip_node/chip/ports/link_egress.py",
        old="tail_ps + latency_ps, packet)",
        new="head_ps + latency_ps, packet)",
        breaks="The tail of a packet arrives after it has left the port between SIPs.",
        noticed_by="a.",
    ),
    Mutant(
        name="sip-crossing-without-noc",
        file="sip_node/chip/ports/ucie_ports.py",
        old="sips.entry_ps(chip.sip, other),",
        new="link.latency_ps,",
        breaks="A packet that arrives from another SIP enters the IO NoC.",
        noticed_by="a.",
    ),
    Mutant(
        name="switch-input-port-per-target",
        file="sip_node/chip/ports/ucie_ports.py",
        old="up if switched else",
        new='port("ucie.switch", bw_gbs) if switched else',
        breaks="With a switch, a SIP has one port for all that it sends.",
        noticed_by="n.meet.switch",
    ),
    Mutant(
        name="switch-output-without-queue",
        file="sip_node/chip/ports/ucie_ports.py",
        old="self.later(start_ps, _SWITCHED,",
        new="self.later(self.engine.now_ps, _SWITCHED,",
        breaks="Packets from several SIPs queue at the port of the switch to their target.",
        noticed_by="n.head",
    ),
    Mutant(
        name="switch-output-shared-by-nobody",
        file="sip_node/chip/ports/ucie_ports.py",
        old="port.serve(now_ps, tail_ps, packet.size)",
        new="port.serve(now_ps, tail_ps, 0)",
        breaks="The port of the switch has the bandwidth of UCIe.",
        noticed_by="n.meet.switch",
    ),
    Mutant(
        name="arrivals-by-descending-source",
        file="sip_node/pdes/inbox.py",
        old="(time_ps, source, seq, tail_ps, packet)",
        new="(time_ps, -source, seq, tail_ps, packet)",
        breaks="Of packets that arrive together, that of the SIP with the least number is first.",
        noticed_by="n.meet.switch",
    ),
    Mutant(
        name="forwarding-store-and-forward",
        file="sip_node/chip/ports/ucie_ports.py",
        old=("        else:\n            self.accept(packet, tail_ps)"),
        new=(
            "        else:\n            self._chip.engine.at(tail_ps, self.accept, packet, tail_ps)"
        ),
        breaks="A SIP forwards packets of others cut-through.",
        noticed_by="n.meet.forward",
    ),
    Mutant(
        name="forwarding-around-the-ports",
        file="sip_node/chip/ports/link_egress.py",
        old="self.port.serve(head_ps, tail_ps, packet.size)",
        new=(
            "(\n            self.port\n"
            "            if packet.transfer.source_sip == self._source\n"
            "            else type(self.port)(self.port.name, 128)\n"
            "        ).serve(head_ps, tail_ps, packet.size)"
        ),
        breaks="Packets that a SIP forwards share its links with its own.",
        noticed_by="n.meet.forward",
    ),
)
