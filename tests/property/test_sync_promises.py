"""Frames on the wire: promises grow and are kept, and idle gaps are cheap."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.wire.frames import Frame
from sip_node.pdes.sync import NULL_HOPS
from tests.support.pdes_network import Tap, prompt, scrambled
from tests.support.pdes_world import Link, World, reference, run_world

SEEDS = st.integers(0, 2**32)


def ring(lps: int, lookahead_ps: int = 10) -> tuple[Link, ...]:
    """Channels in both directions between neighbours."""
    pairs = {(lp, (lp + step) % lps) for lp in range(lps) for step in (1, lps - 1)}
    return tuple(Link(a, b, lookahead_ps) for a, b in sorted(pairs) if a != b)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    SEEDS,
    SEEDS,
    st.lists(st.integers(0, 2), min_size=2, max_size=5).map(tuple),
    st.sampled_from([0, 100, 100_000]),
    st.booleans(),
)
def test_promises_never_decrease_and_are_kept(
    seed: int, schedule: int, hosts: tuple[int, ...], gap_ps: int, promises: bool
):
    lps = len(hosts)
    transports, next_lp = scrambled(lps, schedule)
    taps = [Tap(lp, transport) for lp, transport in enumerate(transports)]
    run_world(
        World(tuple(range(lps)), ring(lps), seed, gap_ps=gap_ps, hosts=hosts),
        list(taps),
        next_lp,
        promises=promises,
    )
    for frames in (_frames(tap, peer) for tap in taps for peer in range(lps)):
        promise_ps = 0
        for frame in frames:
            assert all(message.time_ps >= promise_ps for message in frame.messages)
            assert frame.promise_ps >= promise_ps
            assert frame.messages or (
                frame.promise_ps > promise_ps and frame.null_hops <= NULL_HOPS
            )
            promise_ps = frame.promise_ps


def _frames(tap: Tap, peer: int) -> list[Frame]:
    return [each for to, each in tap.sent if to == peer and isinstance(each, Frame)]


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.lists(st.integers(0, 1), min_size=2, max_size=4).map(tuple))
def test_an_idle_gap_of_a_million_lookaheads_costs_no_more_than_one_of_a_hundred(
    seed: int, hosts: tuple[int, ...]
):
    lps = len(hosts)
    short, long = (
        World(tuple(range(lps)), ring(lps), seed, gap_ps=gap_ps, hosts=hosts)
        for gap_ps in (1_000, 10_000_000)
    )
    rounds = [run_world(world, *prompt(lps)).rounds for world in (short, long)]
    # The gaps shift events against each other, so the runs differ; promises that grow by one
    # lookahead would cost 10^6 rounds.
    assert rounds[1] <= 2 * rounds[0] + 50


def test_null_messages_stay_few_for_each_event_that_ends_a_gap():
    """Each entity has 40 events, gaps of up to 10^5 lookaheads, and messages after each event."""
    for lps in (2, 3, 4):
        world = World(tuple(range(lps)), ring(lps), seed=lps, budget=40, gap_ps=1_000_000)
        run = run_world(world, *prompt(lps))
        assert run.logs == reference(world)
        events = sum(lp.statistics.events for lp in run.lps)
        # An event may be followed by one promise of its own and NULL_HOPS echoes per channel of the
        # ring.
        assert run.null_messages <= events * (1 + NULL_HOPS) * 2


def test_a_quiet_component_saves_rounds():
    """The same traffic with the promises of components, and with the event list alone."""
    world = World((0, 1), ring(2), seed=5, budget=200, gap_ps=40)
    sharpened = run_world(world, *prompt(2))
    plain = run_world(world, *prompt(2), promises=False)
    assert sharpened.logs == plain.logs
    assert sharpened.null_messages < plain.null_messages
