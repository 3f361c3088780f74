"""Compares every message of a run with the bounds that its SIP gave before."""

from collections.abc import Callable
from functools import partial

from runtime.ccl.config import CclConfig
from runtime.ccl.ring_allocator import InstallPlans
from runtime.core.simtime import NEVER_PS
from runtime.model.topology import Topology
from sip_node.chip.chip import Chip, chip_spec
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.records.op_log import OpLog
from sip_node.pdes.engine import Engine
from sip_node.programs.lists.kernel_start import KernelStart
from sip_node.programs.rank import Rank
from tests.support.links import CalledEnd


class BoundCheck:
    """All SIPs of a run on one engine.

    The bounds of every chip are read before each time of an event, and each message is compared
    with them. A message of another SIP that a chip only forwards is bound from its arrival on.
    """

    def __init__(self, topology: Topology, ccl: CclConfig, program: Callable[[int], None]) -> None:
        self.engine, kernels = Engine(), KernelStart(None)
        plan = chip_spec(
            topology,
            data=False,
            start_kernel=lambda at, launch: kernels.start(self.chips[at.sip].pe(at), launch),
        )
        self.chips = {
            sip: Chip(plan, sip, self.engine, OpLog(None)) for sip in range(topology.sips)
        }
        for sip, chip in self.chips.items():
            neighbours = plan.sips.neighbours(sip)
            chip.boundary.connect(
                {other: CalledEnd(partial(self._cross, other)) for other in neighbours}
            )
        for sip, chip in self.chips.items():
            rank = Rank(
                self.engine,
                chip.host,
                sip,
                (topology, ccl),
                data=False,
                plans=InstallPlans(),
                main=partial(program, sip),
            )
            rank.state.world_size = topology.sips
        self._bound_ps = {(sip, target): 0 for sip in self.chips for target in self.chips}
        self.margins_ps: list[int] = []
        self.forwarded = 0

    def run(self) -> None:
        while (now_ps := self.engine.next_ps()) < NEVER_PS:
            for sip, chip in self.chips.items():
                launch_ps, known_ps = chip.send_bounds.earliest_send_ps(now_ps)
                for target in self.chips:
                    bound_ps = min(launch_ps, known_ps.get(target, launch_ps))
                    self._bound_ps[sip, target] = max(self._bound_ps[sip, target], bound_ps)
            self.engine.run_before(now_ps + 1)

    def _cross(
        self, target: int, head_ps: int, source: int, seq: int, tail_ps: int, packet: Packet
    ) -> None:
        if packet.transfer.source_sip == source:
            self.margins_ps.append(self.engine.now_ps - self._bound_ps[source, packet.transfer.sip])
        else:
            self.forwarded += 1
        self.chips[target].boundary.arrive(head_ps, source, seq, tail_ps, packet)
