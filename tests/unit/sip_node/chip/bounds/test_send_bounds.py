"""The bounds of a SIP on its next message, alone and in whole runs."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import pytest

from runtime import DPPolicy, torch
from runtime.ccl.config import CclConfig, parse_ccl
from runtime.core.config.config_file import default_file, read_text
from runtime.core.requests import KernelLaunchMsg, Transfer
from runtime.model.topology import parse_topology
from sip_node.chip.bounds.command_bounds import AnswerLink, CommandBounds, CommandTimes
from sip_node.chip.bounds.send_bounds import Pe, SendBounds
from sip_node.chip.fabric.server import Server
from tests.support.bound_check import BoundCheck
from tests.support.topologies import variant_text

HERE, THERE = (0, 0), (1, 0)
PORT_PS, LAUNCH_PS = {HERE: 10, THERE: 30}, 500


class Bounds(SendBounds):
    """The bounds of a SIP whose commands are submitted at 0, one for each kernel."""

    def __init__(self, *, answers: bool = False) -> None:
        super().__init__(
            PORT_PS, CommandBounds(CommandTimes(message_ps=LAUNCH_PS)), answers=answers
        )
        self.number = 0

    def starts(self, start_ps: int, pes: Sequence[Pe], table: str = "ring", call: str = "") -> None:
        """A kernel, as a collective with a `call`."""
        self._starts(start_ps, KernelLaunchMsg("k", int, (), tuple(pes), table, call))

    def posts(self, start_ps: int, pes: Sequence[Pe], call: str, peer: int) -> None:
        """A transfer."""
        transfer = Transfer("send", "E", peer, "", 0, 1, 0, "isend", "here")
        launch = KernelLaunchMsg("k", int, (), tuple(pes), "ring", call, transfer=transfer)
        self._starts(start_ps, launch)

    def _starts(self, start_ps: int, launch: KernelLaunchMsg) -> None:
        self.number += 1
        self.commands.submitted(self.number, self.number, (), 0, [launch])
        self.stamped(self.number, launch, start_ps)


class NothingAhead:
    """A lookout without packets."""

    def bounds(self, base_ps: int) -> Iterable[tuple[int, int]]:
        del base_ps
        return ()


def test_an_idle_sip_sends_nothing_before_a_launch_has_reached_a_pe() -> None:
    assert Bounds().earliest_send_ps(1000) == (1000 + LAUNCH_PS, {})


def test_a_sip_whose_memories_reply_to_others_has_no_bound_beyond_its_next_event() -> None:
    assert Bounds(answers=True).earliest_send_ps(1000) == (1000, {})


def test_a_message_of_a_running_kernel_needs_the_path_to_the_port() -> None:
    seen = Bounds()
    seen.reaches(THERE, "ring", (2,))
    seen.starts(2000, [HERE, THERE])
    assert seen.earliest_send_ps(0) == (LAUNCH_PS, {2: 2000 + PORT_PS[THERE]})
    assert seen.earliest_send_ps(2100) == (2100 + LAUNCH_PS, {2: 2100 + PORT_PS[THERE]})


def test_a_repeated_launch_sends_nothing_and_its_answers_do_not_wait_for_themselves() -> None:
    seen, link = Bounds(), Server("link", 1.0)
    seen.look_out(cast(Any, NothingAhead()), lambda _: None, {0: AnswerLink(link, after_ps=30)})
    seen.reaches(HERE, "ring", (2,))
    launch = KernelLaunchMsg("k", int, (), (HERE,), "ring")
    seen.commands.submitted(1, 1, (), 0, [launch])
    seen.commands.rank_waits(1)
    # The answer has reserved the link up to its own end.
    link.reserve(0, 0, 5)
    seen.repeated(1, launch, start_ps=2000, end_ps=4000)
    assert seen.earliest_send_ps(2500) == (4000 + LAUNCH_PS, {})


def test_a_kernel_sends_only_where_the_queues_of_its_table_lead() -> None:
    seen = Bounds()
    seen.reaches(HERE, "ring", (1, 3))
    seen.reaches(HERE, "tree", (2,))
    seen.reaches(THERE, "ring", (3,))
    seen.starts(0, [THERE])
    seen.starts(0, [HERE], "tree", call="all_reduce")
    assert seen.earliest_send_ps(50)[1] == {2: 50 + PORT_PS[HERE], 3: 50 + PORT_PS[THERE]}


def test_messages_that_stay_in_the_lp_have_no_bound() -> None:
    seen = Bounds()
    seen.only_to({2})
    seen.reaches(HERE, "ring", (1, 2))
    seen.starts(0, [HERE])
    seen.posts(0, [HERE], "isend", 1)
    for target in (1, 2):
        seen.departed(target, 5)
    assert seen.earliest_send_ps(3)[1] == {2: 5}
    seen.entered(2, 5)
    assert seen.earliest_send_ps(3)[1] == {2: 3 + PORT_PS[HERE]}


def test_of_several_pes_that_reach_a_sip_the_nearest_counts() -> None:
    seen = Bounds()
    for pe in (THERE, HERE):
        seen.reaches(pe, "ring", (1,))
    seen.starts(0, [THERE, HERE])
    assert seen.earliest_send_ps(50)[1] == {1: 50 + min(PORT_PS.values())}


def test_a_kernel_that_computes_sends_nothing_until_the_end_of_it() -> None:
    seen = Bounds()
    seen.reaches(HERE, "ring", (1,))
    seen.starts(0, [HERE])
    seen.waiting(HERE, "kernels", lambda: 400, sends=False)
    assert seen.earliest_send_ps(100)[1] == {1: 400 + PORT_PS[HERE]}


def test_a_kernel_that_returns_credits_while_it_computes_may_send_at_any_time() -> None:
    seen = Bounds()
    seen.reaches(HERE, "ring", (1,))
    seen.starts(0, [HERE])
    seen.waiting(HERE, "kernels", lambda: 400, sends=True)
    assert seen.earliest_send_ps(100)[1] == {1: 100 + PORT_PS[HERE]}


def test_the_end_of_what_a_kernel_waits_for_is_computed_again_when_it_is_near() -> None:
    ends_ps = [400, 900, 0]
    seen = Bounds()
    seen.reaches(HERE, "ring", (1,))
    seen.starts(0, [HERE])
    seen.waiting(HERE, "kernels", lambda: ends_ps.pop(0), sends=False)
    assert seen.earliest_send_ps(399)[1] == {1: 400 + PORT_PS[HERE]}
    assert seen.earliest_send_ps(400)[1] == {1: 900 + PORT_PS[HERE]}
    # What it waits for is complete, and bounds nothing any more.
    assert seen.earliest_send_ps(901)[1] == {1: 901 + PORT_PS[HERE]}


def test_a_computation_on_one_thread_of_a_pe_does_not_bound_the_other_thread() -> None:
    seen = Bounds()
    seen.reaches(HERE, "ring", (1,))
    seen.starts(0, [HERE])
    seen.starts(0, [HERE], call="all_reduce")
    seen.waiting(HERE, "kernels", lambda: 400, sends=False)
    assert seen.earliest_send_ps(100)[1] == {1: 100 + PORT_PS[HERE]}
    seen.ended(HERE, "collectives")
    assert seen.earliest_send_ps(100)[1] == {1: 400 + PORT_PS[HERE]}


def test_a_kernel_without_queues_to_other_sips_does_not_count() -> None:
    seen = Bounds()
    seen.reaches(HERE, "ring", ())
    seen.starts(0, [HERE])
    seen.starts(0, [THERE], "")
    seen.waiting(HERE, "kernels", lambda: 100, sends=False)
    assert seen.earliest_send_ps(50) == (50 + LAUNCH_PS, {})


def test_a_kernel_that_has_ended_does_not_count() -> None:
    seen = Bounds()
    seen.reaches(HERE, "ring", (1,))
    seen.starts(0, [HERE])
    seen.ended(HERE, "kernels")
    assert seen.earliest_send_ps(50) == (50 + LAUNCH_PS, {})


def test_a_transfer_bounds_its_peer_until_it_has_ended_on_all_its_pes() -> None:
    seen = Bounds()
    seen.posts(80, [THERE, HERE], "a", 2)
    nearest_ps = min(PORT_PS.values())
    assert seen.earliest_send_ps(50)[1] == {2: 80 + nearest_ps}
    seen.posts(60, [HERE], "b", 2)
    assert seen.earliest_send_ps(50)[1] == {2: 60 + PORT_PS[HERE]}
    seen.transferred("b")
    seen.transferred("a")
    # Notices, data and credits of the other PE may leave at any time.
    assert seen.earliest_send_ps(90)[1] == {2: 90 + nearest_ps}
    seen.transferred("a")
    assert seen.earliest_send_ps(90) == (90 + LAUNCH_PS, {})


def test_a_packet_in_flight_bounds_until_it_has_been_posted() -> None:
    seen = Bounds()
    seen.departed(2, 120)
    seen.departed(3, 150)
    assert seen.earliest_send_ps(50)[1] == {2: 120, 3: 150}
    assert seen.earliest_send_ps(130)[1] == {2: 130, 3: 150}
    seen.entered(2, 120)
    assert seen.earliest_send_ps(130)[1] == {3: 150}


def all_reduce(algorithm: str) -> Callable[[int], None]:
    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm", algorithm=algorithm)
        tensor = torch.empty(2, 600, dp=DPPolicy(cube="row_wise", num_pes=1))
        for _ in range(3):
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


def in_rank_order() -> CclConfig:
    """The shipped file with topologies by import path: they keep the order of ranks, in which SIPs
    forward messages to others.
    """
    text = read_text(default_file("ccl.yaml"))
    for name in ("ring_1d", "hypercube"):
        text = text.replace(f"topology: {name}\n", f"topology: runtime.ccl.topologies.{name}\n")
    return parse_ccl(text, "ccl.yaml")


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_no_message_leaves_before_its_bound(run: str) -> None:
    algorithm, sips, changes = RUNS[run]
    text = variant_text(
        sip__cube_mesh={"w": 2, "h": 1}, cube__pe_layout__pe_per_corner=1, **changes
    )
    program = all_reduce(algorithm) if algorithm else messages
    check = BoundCheck(parse_topology(text, "topology.yaml", sips), in_rank_order(), program)
    check.run()
    assert len(check.margins_ps) > 40
    assert min(check.margins_ps) >= 0
    # The bound is of use only if it is often reached: somebody's message leaves exactly when it
    # could at the earliest.
    assert 0 in check.margins_ps
    assert (check.forwarded > 0) == (
        run in {"across a ring of four", "a ring over a torus", "messages on a ring"}
    )
