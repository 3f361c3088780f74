from collections.abc import Callable
from itertools import count

import pytest

from runtime.core.errors import ProtocolError
from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import Frame, Grant, Message, SilenceReport
from sip_node.pdes.loop import BATCH_EVENTS, STEP_S, LogicalProcess
from sip_node.pdes.promises import SendBound
from sip_node.pdes.sync import Sync
from tests.support.pdes_network import prompt
from tests.support.pdes_world import Link, World, WorldModel, reference, run_world
from tests.support.transport_memory import MemoryNetwork

PAIR = (Link(0, 1, 10), Link(1, 0, 10))


class Ticks:
    """A model of events at given times that sends nothing."""

    def __init__(self, *times_ps: int, peers: tuple[int, ...] = ()) -> None:
        self.times_ps, self.peers = list(times_ps), peers
        self.steps: list[list[int]] = []

    def next_ps(self) -> int:
        return self.times_ps[0] if self.times_ps else NEVER_PS

    def run_before(self, bound_ps: int, at_most: int) -> int:
        step = [t for t in self.times_ps if t < bound_ps][:at_most]
        self.times_ps = self.times_ps[len(step) :]
        self.steps.append(step)
        return len(step)

    def deliver(self, message: Message) -> None:
        self.times_ps = sorted([*self.times_ps, message.time_ps])

    def earliest_sends(self, base_ps: int) -> list[SendBound]:
        return [SendBound(peer, 0, base_ps) for peer in self.peers]


def alone(model: Ticks, watch: Callable[[], None] = lambda: None) -> LogicalProcess:
    return LogicalProcess(Sync(0, 1, {}, {}), model, watch=watch)


def test_an_lp_that_is_alone_runs_to_the_end_without_a_transport():
    world = World((0, 0, 0), (Link(0, 1, 5), Link(1, 2, 5)), seed=4)
    model = WorldModel(world, 0, post=lambda peer, message: None)
    statistics = LogicalProcess(Sync(0, 1, {}, {}), model).run()
    assert {n: e.log for n, e in model.entities.items()} == reference(world)
    assert statistics.events > 0
    assert (statistics.messages, statistics.null_messages) == (0, 0)


def test_an_lp_with_nothing_to_do_ends():
    assert alone(Ticks()).run().events == 0


def test_a_long_run_comes_back_to_watch_after_a_step_if_that_is_due():
    calls: list[int] = []
    # The events are dense behind a long time without any.
    model, clock = Ticks(0, *range(10**9, 10**9 + 5 * BATCH_EVENTS)), count()
    loop = LogicalProcess(
        Sync(0, 1, {}, {}),
        model,
        watch=lambda: calls.append(sum(map(len, model.steps))),
        # The watch is due in each round, and a step ends after three looks at the clock.
        clock=lambda: 0.4 * STEP_S * next(clock),
    )
    loop.run()
    assert calls == [0, 3 * BATCH_EVENTS]
    assert {len(step) for step in model.steps[:-1]} == {BATCH_EVENTS}
    assert loop.statistics.events == 5 * BATCH_EVENTS + 1


def test_a_step_that_ends_early_promises_no_more_than_it_has_executed():
    model = Ticks(*range(2 * BATCH_EVENTS), peers=(1,))
    network, clock = MemoryNetwork(2), count()
    lp = LogicalProcess(
        Sync(0, 2, {1: 10_000}, {1: 10_000}),
        model,
        network.transport(0),
        clock=lambda: 2 * STEP_S * next(clock),
    )
    lp.round()
    assert lp.now_ps == lp.next_ps == BATCH_EVENTS
    ((_, frame),) = network.transport(1).poll()
    assert isinstance(frame, Frame)
    assert frame.promise_ps == 10_000 + BATCH_EVENTS


def test_short_rounds_do_not_watch_every_time():
    calls: list[None] = []
    loop = LogicalProcess(
        Sync(0, 1, {}, {}), Ticks(), watch=lambda: calls.append(None), clock=lambda: 0.0
    )
    for _ in range(3):
        loop.round()
    assert len(calls) == 1


def test_what_watch_raises_ends_the_run():
    def abort() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        alone(Ticks(1), watch=abort).run()


def test_no_event_is_executed_at_or_after_the_safe_time():
    model = Ticks(9, 10, 19, 20, peers=(1,))
    network = MemoryNetwork(2)
    lp = LogicalProcess(Sync(0, 2, {1: 10}, {1: 10}), model, network.transport(0))
    lp.round()
    assert model.steps == [[9]]
    network.transport(1).send(0, Frame((20,), 0))
    lp.round()
    assert model.steps == [[9], [10, 19]]
    assert lp.now_ps == 20


def test_a_frame_s_messages_are_executed_before_its_promise_is_used_up():
    model = Ticks(peers=(1,))
    network = MemoryNetwork(2)
    lp = LogicalProcess(Sync(0, 2, {1: 10}, {1: 10}), model, network.transport(0))
    network.transport(1).send(0, Frame((20,), 0, (Message(15, 1, 0, 1), Message(20, 1, 0, 2))))
    lp.round()
    assert model.steps == [[15]]


@pytest.mark.parametrize("others", [1, 7])
def test_a_blocked_leader_makes_a_round_for_frames_and_grants_and_none_for_reports(
    others: int,
) -> None:
    """All others report an event at 100 ps, behind the safe time of 10 ps, in a round each."""
    model, lps = Ticks(200, peers=(1,)), 1 + others
    network = MemoryNetwork(lps)
    lp = LogicalProcess(Sync(0, lps, {1: 10}, {1: 10}), model, network.transport(0))
    lp.round()
    steps = len(model.steps)
    for peer in range(1, lps):
        # Its own report, for which the first one calls, completes the reports of the host.
        assert (lp.statistics.rounds, len(model.steps)) == (1, steps)
        network.transport(peer).send(0, SilenceReport(0, 100, NEVER_PS, True))
        lp.round()
    while lp.statistics.rounds == 1:
        lp.round()
    assert lp.safe_ps == 110
    assert len(model.steps) == steps + 1


def test_every_message_is_counted_and_null_messages_apart():
    run = run_world(World((0, 1), PAIR, seed=1), *prompt(2))
    sent = sum(kind == 0 for log in run.logs.values() for _, kind, _, _ in log)
    assert run.messages == sent > 0
    assert run.null_messages > 0


@pytest.mark.parametrize(
    ("lp", "peer", "content"),
    [(1, 0, SilenceReport(0, 0, 0, True)), (0, 1, Grant(5, True))],
    ids=["a report to another than LP 0", "a grant from another than LP 0"],
)
def test_only_lp_0_takes_reports_and_grants(lp: int, peer: int, content: SilenceReport | Grant):
    network = MemoryNetwork(2)
    loop = LogicalProcess(
        Sync(lp, 2, {peer: 10}, {peer: 10}), Ticks(peers=(peer,)), network.transport(lp)
    )
    network.transport(peer).send(lp, content)
    with pytest.raises(ProtocolError, match="reports go to the first LP of a host"):
        loop.round()


def test_all_lps_end_together_when_each_waits_for_the_other():
    """A global deadlock of the model, as the field calls it, is an ordinary end for the loop."""
    run = run_world(World((0, 1), PAIR, seed=1, budget=0), *prompt(2))
    assert all(lp.ended for lp in run.lps)
    assert [lp.statistics.messages for lp in run.lps] == [0, 0]
