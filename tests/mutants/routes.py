from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        name="cube-rows-first",
        file="runtime/model/router_grid.py",
        old="((row, col - 1), (row, col + 1), (row - 1, col), (row + 1, col))",
        new="((row - 1, col), (row + 1, col), (row, col - 1), (row, col + 1))",
        breaks="In a cube a step along a row of routers is taken before a step along a column.",
        noticed_by="r.route.",
    ),
    Mutant(
        name="cube-east-before-west",
        file="runtime/model/router_grid.py",
        old="((row, col - 1), (row, col + 1), (row",
        new="((row, col + 1), (row, col - 1), (row",
        breaks="Round the hole, west comes before east where both are equally long.",
        noticed_by="r.route.",
    ),
    Mutant(
        name="grid-columns-wrap-as-rows",
        file="runtime/model/sip_fabric.py",
        old="self._step(row, to_row, self.rows)",
        new="self._step(row, to_row, self.columns)",
        breaks="Each dimension of a torus of SIPs has its own size.",
        noticed_by="r.route.torus_2d",
    ),
    Mutant(
        name="credits-buffer-of-one-way",
        file="sip_node/chip/ports/credited_ports.py",
        old="round_trip_ps = 2 * (",
        new="round_trip_ps = 1 * (",
        breaks="The ingress buffer of a link between SIPs covers a round trip.",
        noticed_by="r.link.credits.stream",
    ),
    Mutant(
        name="credits-at-the-end-of-a-message",
        file="sip_node/chip/ports/credited_ports.py",
        old="            self._chip.engine.at(left_ps, self._crossed, packet)\n",
        new="            self._chip.engine.at(left_ps + 64_000, self._crossed, packet)\n",
        breaks="An egress buffer has room again as soon as the tail of a packet is on the link.",
        noticed_by="r.link.credits.stream",
    ),
    Mutant(
        name="credits-store-and-forward",
        file="sip_node/chip/ports/credited_ports.py",
        old="self.cross(packet, tail_ps)",
        new="self.cross(packet, tail_ps + 1_000)",
        breaks="With credits, the tail of a packet crosses no later than the link requires.",
        noticed_by="r.link.credits.",
    ),
    Mutant(
        name="credits-of-a-slow-crossing",
        file="sip_node/chip/ports/link_egress.py",
        old="self.depart(packet, self.engine.now_ps, self.engine.now_ps)",
        new=(
            "late_ps = self.engine.now_ps + 8 * self.latency_ps\n"
            "        self.depart(packet, late_ps, late_ps)"
        ),
        breaks="A credit takes the latency of a crossing.",
        noticed_by="r.link.credits.stream",
    ),
    Mutant(
        name="credits-last-in-first-out",
        file="sip_node/chip/ports/credited_ports.py",
        old="packet, tail_ps = queue.popleft()",
        new="packet, tail_ps = queue.pop()",
        breaks="An egress queue is FIFO.",
        noticed_by="",
    ),
    Mutant(
        name="memory-room-for-one-packet",
        file="runtime/model/schema/topology_schema.py",
        old="return max(buffer_bytes, 2 * self.packet_bytes)",
        new="return self.packet_bytes",
        breaks="A port has room for two packets: one arrives while another is served.",
        noticed_by="r.link.credits.stream",
    ),
)
