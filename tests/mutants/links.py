from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        name="link-store-and-forward",
        file="sip_node/chip/fabric/server.py",
        old="            start_ps = head_ps\n",
        new="            start_ps = tail_ps\n",
        breaks="Switching is cut-through: a link starts a packet when its head has arrived.",
        noticed_by="a.0",
    ),
    Mutant(
        name="link-tail-before-it-arrives",
        file="sip_node/chip/fabric/server.py",
        old="            end_ps = tail_ps\n",
        new="            end_ps = end_ps + 0\n",
        breaks="The tail of a packet cannot leave a link before it has arrived.",
        noticed_by="a.0",
    ),
    Mutant(
        name="link-free-while-a-tail-is-late",
        file="sip_node/chip/fabric/server.py",
        old="        self.free_ps = self.tail_ps = end_ps\n",
        new="        self.free_ps, self.tail_ps = start_ps + duration_ps, end_ps\n",
        breaks=(
            "A link is busy until the tail of a packet has left, even if a slower link before "
            "it delays the tail."
        ),
        noticed_by="n.meet.held",
    ),
    Mutant(
        name="link-rounds-down",
        file="sip_node/kernel/exact.py",
        old="    ratio = -(-number * numerator // denominator)\n",
        new="    ratio = number * numerator // denominator\n",
        breaks="The time of a packet on a link is rounded up.",
        noticed_by="a.",
    ),
    Mutant(
        name="link-idle-after-a-packet",
        file="sip_node/chip/fabric/server.py",
        old="        self.free_ps = self.tail_ps = end_ps\n",
        new="        self.free_ps, self.tail_ps = end_ps + 1, end_ps\n",
        breaks="Packets follow each other on a link without a gap.",
        noticed_by="c.sink",
    ),
    Mutant(
        name="packet-overtakes-on-a-busy-link",
        file="sip_node/chip/fabric/server.py",
        old="        start_ps = self.free_ps\n",
        new="        start_ps = self.free_ps if nbytes > 64 else head_ps\n",
        breaks="A control packet waits behind the data on its link.",
        noticed_by="n.meet.held",
    ),
    Mutant(
        name="hop-tail-without-port-delay",
        file="sip_node/chip/fabric/hops.py",
        old="tail_ps + pre_ps, packet.size",
        new="tail_ps, packet.size",
        breaks="The delay before a link moves head and tail of a packet.",
        noticed_by="a.0",
    ),
    Mutant(
        name="hop-tail-without-link-delay",
        file="sip_node/chip/fabric/hops.py",
        old="start_ps + post_ps, tail_ps + post_ps",
        new="start_ps + post_ps, tail_ps",
        breaks="The delay behind a link moves head and tail of a packet.",
        noticed_by="a.0",
    ),
    Mutant(
        name="directions-share-a-link",
        file="sip_node/chip/fabric/fabric.py",
        old="        self.bind(",
        new=(
            "        # The links of a wire are neighbours in the list.\n"
            "        self.servers = [\n"
            "            self.servers[index - index % 2] for index in range(len(sel"
            "f.servers))\n"
            "        ]\n"
            "        self.bind("
        ),
        breaks="The two directions of a link are two links.",
        noticed_by="e.zero-load",
    ),
    Mutant(
        name="wire-rounded-down",
        file="runtime/model/cube_plan.py",
        old="    return round(mm *",
        new="    return int(mm *",
        breaks="The delay of a wire is rounded to the nearest picosecond.",
        noticed_by="a.",
    ),
    Mutant(
        name="overhead-rounded-down",
        file="runtime/core/simtime.py",
        old="    return round(exact(ns) * PS_PER_NS)\n",
        new="    return int(exact(ns) * PS_PER_NS)\n",
        breaks="An overhead is rounded to the nearest picosecond.",
        noticed_by="a.",
    ),
    Mutant(
        name="router-pitch-swapped",
        file="runtime/model/router_grid.py",
        old="        return self.pitch_x_mm if",
        new="        return self.pitch_y_mm if",
        breaks="The wire between two routers of a row has the pitch of the columns.",
        noticed_by="a.",
    ),
    Mutant(
        name="nearest-router-last-of-equals",
        file="runtime/model/router_grid.py",
        old="index = min(range(len(distances)), key",
        new="index = min(reversed(range(len(distances))), key",
        breaks=(
            "A component is at the nearest router, of equals at that with the lowest row and "
            "column."
        ),
        noticed_by="a.",
    ),
    Mutant(
        name="cube-gap-of-the-io-chiplet",
        file="runtime/model/sip_plan.py",
        old="exact(sip.cube_gap_mm), key",
        new="exact(sip.io_chiplet.gap_mm), key",
        breaks="The wire between two cubes has the length of their gap.",
        noticed_by="a.",
    ),
    Mutant(
        name="port-wire-forgotten",
        file="runtime/model/routing.py",
        old="post_ps += from_port.wire_ps + graph",
        new="post_ps += graph",
        breaks="The wire from a UCIe port to its router has a delay.",
        noticed_by="a.0",
    ),
    Mutant(
        name="port-overhead-once",
        file="runtime/model/routing.py",
        old="pre_ps = to_port.wire_ps + graph.nodes[link.source].overhead_ps",
        new="pre_ps = to_port.wire_ps",
        breaks="Both UCIe ports of a crossing between cubes take their overhead.",
        noticed_by="a.0",
    ),
    Mutant(
        name="own-slice-through-the-mesh",
        file="runtime/model/routing.py",
        old='peer.kind in ("xbar", "hbm_ctrl") and node.pe == peer.pe',
        new='peer.kind in ("xbar", "hbm_ctrl") and node.pe > peer.pe',
        breaks="A PE reaches its own HBM slice through its crossbar, not through the router mesh.",
        noticed_by="a.0",
    ),
    Mutant(
        name="router-rows-before-columns",
        file="runtime/model/router_grid.py",
        old="for cell in ((row, col - 1), (row, col + 1), (row - 1, col), (row + 1, col)):",
        new="for cell in ((row - 1, col), (row + 1, col), (row, col - 1), (row, col + 1)):",
        breaks="In the router mesh a route takes a step along a row of routers first.",
        noticed_by="e.fifo",
    ),
    Mutant(
        name="sram-link-of-the-mesh",
        file="runtime/model/cube_plan.py",
        old='cube.sram.pos_mm, "cube.sram_to_router_bw_gbs"',
        new='cube.sram.pos_mm, "cube.noc.link_bw_gbs"',
        breaks="SRAM has the bandwidth of its own link to the router.",
        noticed_by="c.sink",
    ),
    Mutant(
        name="cube-rows-before-columns",
        file="runtime/model/routing.py",
        old=(
            "return [*repeat(across, abs(to_col - from_col)), *repeat(along, abs(to"
            "_row - from_row))]"
        ),
        new=(
            "return [*repeat(along, abs(to_row - from_row)), *repeat(across, abs(to"
            "_col - from_col))]"
        ),
        breaks="Between cubes a route follows columns before rows.",
        noticed_by="n.meet.cubes",
    ),
)
