"""What a SIP promises about its next message, and that it keeps every promise in whole runs."""

from collections.abc import Callable
from functools import partial

import pytest

from runtime import DPPolicy, torch
from runtime.ccl.config import CclConfig, load_ccl
from runtime.hardware.topology import Topology, parse_topology
from runtime.simtime import NEVER_PS
from runtime.wire.messages import Message
from sip_node.chip import Blueprint, Chip
from sip_node.engine import Engine
from sip_node.op_log import OpLog
from sip_node.outlook import Outlook
from sip_node.rank import Rank
from tests.support.topologies import variant_text

HERE, THERE = (0, 0), (1, 0)
PORT_PS, LAUNCH_PS = {HERE: 10, THERE: 30}, 500


def outlook(*, forwards: bool = False) -> Outlook:
    return Outlook(PORT_PS, LAUNCH_PS, forwards=forwards)


def test_an_idle_sip_sends_nothing_before_a_launch_has_reached_a_pe() -> None:
    assert outlook().earliest_send_ps(1000) == 1000 + LAUNCH_PS


def test_a_sip_that_forwards_for_others_can_promise_nothing() -> None:
    assert outlook(forwards=True).earliest_send_ps(1000) == 1000


def test_a_running_kernel_needs_the_way_to_the_port() -> None:
    seen = outlook()
    seen.reaches_out(THERE)
    seen.launched([HERE, THERE], 2000)
    assert seen.earliest_send_ps(0) == LAUNCH_PS
    assert seen.earliest_send_ps(1900) == 2000 + PORT_PS[THERE]
    assert seen.earliest_send_ps(2100) == 2100 + PORT_PS[THERE]


def test_a_kernel_that_computes_decides_nothing_until_it_is_done() -> None:
    seen = outlook()
    seen.reaches_out(HERE)
    seen.launched([HERE], 0)
    seen.computing(HERE, 400)
    assert seen.earliest_send_ps(100) == 400 + PORT_PS[HERE]


def test_a_pe_without_queues_to_other_sips_does_not_count() -> None:
    seen = outlook()
    seen.launched([HERE], 0)
    seen.computing(HERE, 100)
    assert seen.earliest_send_ps(50) == 50 + LAUNCH_PS


def test_a_kernel_that_has_ended_does_not_count() -> None:
    seen = outlook()
    seen.reaches_out(HERE)
    seen.launched([HERE], 0)
    seen.ended(HERE)
    assert seen.earliest_send_ps(50) == 50 + LAUNCH_PS


def test_a_packet_on_its_way_bounds_until_it_has_been_posted() -> None:
    seen = outlook()
    seen.departed(120)
    assert seen.earliest_send_ps(50) == 120
    assert seen.earliest_send_ps(130) == 130
    seen.entered(120)
    assert seen.earliest_send_ps(130) == 130 + LAUNCH_PS


class Promises:
    """All SIPs of a run on one engine. Before each time it asks every chip when it will send, and then holds it to that."""

    def __init__(self, topology: Topology, ccl: CclConfig, program: Callable[[int], None]) -> None:
        self.engine = Engine()
        plan = Blueprint.of(topology, ccl, data=False)
        self.chips = {sip: Chip(plan, sip, self.engine, OpLog(None), self._post) for sip in range(topology.sips)}
        for sip, chip in self.chips.items():
            Rank(self.engine, chip.host, sip, (topology, ccl), data=False, main=partial(program, sip))
        self._bound_ps = dict.fromkeys(self.chips, 0)
        self.margins_ps: list[int] = []

    def run(self) -> None:
        while (now_ps := self.engine.next_ps()) < NEVER_PS:
            for sip, chip in self.chips.items():
                self._bound_ps[sip] = max(self._bound_ps[sip], chip.outlook.earliest_send_ps(now_ps))
            self.engine.run_before(now_ps + 1)

    def _post(self, message: Message) -> None:
        self.margins_ps.append(self.engine.now_ps - self._bound_ps[message.source])
        self.chips[message.target].inbox.put(message)


def all_reduce(algorithm: str) -> Callable[[int], None]:
    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm", algorithm=algorithm)
        tensor = torch.empty(2, 600, dp=DPPolicy(cube="row_wise", num_pes=1))
        for _ in range(2):
            torch.distributed.all_reduce(tensor)
        torch.ahbm.synchronize()

    return program


RUNS = {
    "two in a ring": (2, {}),
    "three in a ring": (3, {}),
    "a ring over a torus": (4, {"system__sips__topology": "torus_2d"}),
    "a switch": (3, {"system__sips__fabric": "switch"}),
    "a mesh": (4, {"system__sips__topology": "mesh_2d_no_wrap"}),
}


@pytest.mark.parametrize("algorithm", ["ring", "intercube"])
@pytest.mark.parametrize("run", RUNS)
def test_no_message_leaves_before_it_was_promised(run: str, algorithm: str) -> None:
    sips, changes = RUNS[run]
    text = variant_text(sip__cube_mesh={"w": 2, "h": 1}, cube__pe_layout__pe_per_corner=1, **changes)
    promises = Promises(parse_topology(text, "topology.yaml", sips), load_ccl(), all_reduce(algorithm))
    promises.run()
    assert len(promises.margins_ps) > 40
    assert min(promises.margins_ps) >= 0
    # The bound is of use only if it is often reached: somebody's message leaves exactly when it could at the earliest.
    assert 0 in promises.margins_ps
