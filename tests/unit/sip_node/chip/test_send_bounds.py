"""The bounds of a SIP on its next message, alone and in whole runs."""

from collections.abc import Callable
from functools import partial

import pytest

from runtime import DPPolicy, torch
from runtime.ccl.config import CclConfig, load_ccl
from runtime.core.simtime import NEVER_PS
from runtime.model.topology import Topology, parse_topology
from sip_node.chip.chip import Chip, chip_spec
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.op_log import OpLog
from sip_node.chip.send_bounds import SendBounds
from sip_node.pdes.engine import Engine
from sip_node.programs.kernel_run import start_kernel
from sip_node.programs.rank import Rank
from tests.support.topologies import variant_text

HERE, THERE = (0, 0), (1, 0)
PORT_PS, LAUNCH_PS = {HERE: 10, THERE: 30}, 500


def send_bounds(*, answers: bool = False) -> SendBounds:
    return SendBounds(PORT_PS, LAUNCH_PS, answers=answers)


def test_an_idle_sip_sends_nothing_before_a_launch_has_reached_a_pe() -> None:
    assert send_bounds().earliest_send_ps(1000) == (1000 + LAUNCH_PS, {})


def test_a_sip_whose_memories_reply_to_others_has_no_bound_beyond_its_next_event() -> None:
    assert send_bounds(answers=True).earliest_send_ps(1000) == (1000, {})


def test_a_message_of_a_running_kernel_needs_the_path_to_the_port() -> None:
    seen = send_bounds()
    seen.reaches(THERE, "ring", (2,))
    seen.launched([HERE, THERE], 2000, "kernels", "ring")
    assert seen.earliest_send_ps(0) == (LAUNCH_PS, {2: 2000 + PORT_PS[THERE]})
    assert seen.earliest_send_ps(2100) == (2100 + LAUNCH_PS, {2: 2100 + PORT_PS[THERE]})


def test_a_kernel_sends_only_where_the_queues_of_its_table_lead() -> None:
    seen = send_bounds()
    seen.reaches(HERE, "ring", (1, 3))
    seen.reaches(HERE, "tree", (2,))
    seen.reaches(THERE, "ring", (3,))
    seen.launched([THERE], 0, "kernels", "ring")
    seen.launched([HERE], 0, "collectives", "tree")
    assert seen.earliest_send_ps(50)[1] == {2: 50 + PORT_PS[HERE], 3: 50 + PORT_PS[THERE]}


def test_of_several_pes_that_reach_a_sip_the_nearest_counts() -> None:
    seen = send_bounds()
    for pe in (THERE, HERE):
        seen.reaches(pe, "ring", (1,))
    seen.launched([THERE, HERE], 0, "kernels", "ring")
    assert seen.earliest_send_ps(50)[1] == {1: 50 + min(PORT_PS.values())}


def test_a_kernel_that_computes_sends_nothing_until_the_end_of_it() -> None:
    seen = send_bounds()
    seen.reaches(HERE, "ring", (1,))
    seen.launched([HERE], 0, "kernels", "ring")
    seen.computing(HERE, 400, "kernels")
    assert seen.earliest_send_ps(100)[1] == {1: 400 + PORT_PS[HERE]}


def test_a_computation_on_one_thread_of_a_pe_does_not_bound_the_other_thread() -> None:
    seen = send_bounds()
    seen.reaches(HERE, "ring", (1,))
    seen.launched([HERE], 0, "kernels", "ring")
    seen.launched([HERE], 0, "collectives", "ring")
    seen.computing(HERE, 400, "kernels")
    assert seen.earliest_send_ps(100)[1] == {1: 100 + PORT_PS[HERE]}
    seen.ended(HERE, "collectives")
    assert seen.earliest_send_ps(100)[1] == {1: 400 + PORT_PS[HERE]}


def test_a_kernel_without_queues_to_other_sips_does_not_count() -> None:
    seen = send_bounds()
    seen.reaches(HERE, "ring", ())
    seen.launched([HERE], 0, "kernels", "ring")
    seen.launched([THERE], 0, "kernels", "")
    seen.computing(HERE, 100, "kernels")
    assert seen.earliest_send_ps(50) == (50 + LAUNCH_PS, {})


def test_a_kernel_that_has_ended_does_not_count() -> None:
    seen = send_bounds()
    seen.reaches(HERE, "ring", (1,))
    seen.launched([HERE], 0, "kernels", "ring")
    seen.ended(HERE, "kernels")
    assert seen.earliest_send_ps(50) == (50 + LAUNCH_PS, {})


def test_a_transfer_bounds_its_peer_until_it_has_ended_on_all_its_pes() -> None:
    seen = send_bounds()
    seen.posted("a", [THERE, HERE], 80, 2)
    nearest_ps = min(PORT_PS.values())
    assert seen.earliest_send_ps(50)[1] == {2: 80 + nearest_ps}
    seen.posted("b", [HERE], 60, 2)
    assert seen.earliest_send_ps(50)[1] == {2: 60 + PORT_PS[HERE]}
    seen.transferred("b")
    seen.transferred("a")
    # Notices, data and credits of the other PE may leave at any time.
    assert seen.earliest_send_ps(90)[1] == {2: 90 + nearest_ps}
    seen.transferred("a")
    assert seen.earliest_send_ps(90) == (90 + LAUNCH_PS, {})


def test_a_packet_in_flight_bounds_until_it_has_been_posted() -> None:
    seen = send_bounds()
    seen.departed(2, 120)
    seen.departed(3, 150)
    assert seen.earliest_send_ps(50)[1] == {2: 120, 3: 150}
    assert seen.earliest_send_ps(130)[1] == {2: 130, 3: 150}
    seen.entered(2, 120)
    assert seen.earliest_send_ps(130)[1] == {2: NEVER_PS, 3: 150}


class BoundCheck:
    """All SIPs of a run on one engine.

    The bounds of every chip are read before each time of an event, and each message is compared
    with them. A message of another SIP that a chip only forwards is bound from its arrival on.
    """

    def __init__(self, topology: Topology, ccl: CclConfig, program: Callable[[int], None]) -> None:
        self.engine = Engine()
        plan = chip_spec(
            topology,
            data=False,
            start_kernel=lambda at, launch: start_kernel(self.chips[at.sip].pe(at), launch),
        )
        self.chips = {
            sip: Chip(plan, sip, self.engine, OpLog(None)) for sip in range(topology.sips)
        }
        for sip, chip in self.chips.items():
            neighbours = plan.sips.neighbours(sip)
            chip.boundary.connect({other: partial(self._cross, other) for other in neighbours})
        for sip, chip in self.chips.items():
            rank = Rank(
                self.engine, chip.host, sip, (topology, ccl), data=False, main=partial(program, sip)
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


def all_reduce(algorithm: str) -> Callable[[int], None]:
    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm", algorithm=algorithm)
        tensor = torch.empty(2, 600, dp=DPPolicy(cube="row_wise", num_pes=1))
        for _ in range(2):
            torch.distributed.all_reduce(tensor)
        torch.ahbm.synchronize()

    return program


def messages(rank: int) -> None:
    """Every rank sends to all others and receives from all, beside a collective."""
    torch.distributed.init_process_group("ahbm", algorithm="ring")
    others = [each for each in range(torch.distributed.get_world_size()) if each != rank]
    sent = torch.empty(3000)
    for other in others:
        torch.distributed.isend(sent, other, tag=rank % 2)
    torch.distributed.all_reduce(torch.empty(700), async_op=True)
    for other in reversed(others):
        torch.distributed.recv(torch.empty(50, 60), other, tag=other % 2)
    torch.ahbm.synchronize()


RUNS: dict[str, tuple[str, int, dict[str, object]]] = {
    "two in a ring": ("ring", 2, {}),
    "three in a ring": ("intercube", 3, {}),
    "across a ring of four": ("recursive_doubling", 4, {}),
    "a ring over a torus": ("ring", 4, {"system__sips__topology": "torus_2d"}),
    "a switch": ("recursive_doubling", 3, {"system__sips__fabric": "switch"}),
    "a mesh": ("intercube", 4, {"system__sips__topology": "mesh_2d_no_wrap"}),
    "messages on a ring": ("", 4, {}),
    "messages through a switch": ("", 3, {"system__sips__fabric": "switch"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_no_message_leaves_before_its_bound(run: str) -> None:
    algorithm, sips, changes = RUNS[run]
    text = variant_text(
        sip__cube_mesh={"w": 2, "h": 1}, cube__pe_layout__pe_per_corner=1, **changes
    )
    program = all_reduce(algorithm) if algorithm else messages
    check = BoundCheck(parse_topology(text, "topology.yaml", sips), load_ccl(), program)
    check.run()
    assert len(check.margins_ps) > 40
    assert min(check.margins_ps) >= 0
    # The bound is of use only if it is often reached: somebody's message leaves exactly when it
    # could at the earliest.
    assert 0 in check.margins_ps
    assert (check.forwarded > 0) == (
        run in {"across a ring of four", "a ring over a torus", "messages on a ring"}
    )
