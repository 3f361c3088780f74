"""Every partition into LPs and hosts, every delay and every schedule give the logs of one event
list.
"""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.pdes_network import prompt, scrambled
from tests.support.pdes_world import Link, World, reference, run_world

PS = st.sampled_from([1, 2, 3, 10, 50])
SEEDS = st.integers(0, 2**32)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Networks of up to 6 entities on up to 5 LPs on up to 3 hosts; the channels may be cyclic,
    one-way or unconnected.
    """
    homes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=6))
    ranks = {home: rank for rank, home in enumerate(sorted(set(homes)))}
    pairs = [(a, b) for a in range(len(homes)) for b in range(len(homes)) if a != b]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=10)) if pairs else []
    links = tuple(Link(a, b, draw(PS), draw(st.sampled_from([0, 0, 1, 5]))) for a, b in chosen)
    gap_ps = draw(st.sampled_from([0, 100, 1_000_000]))
    hosts = draw(st.lists(st.integers(0, 2), min_size=len(ranks), max_size=len(ranks)))
    return World(
        tuple(ranks[home] for home in homes),
        links,
        draw(SEEDS),
        draw(st.integers(0, 8)),
        gap_ps,
        tuple(hosts),
    )


AFTER_A_REPORT = World(
    (0, 1, 2, 3, 4),
    (
        Link(0, 1, 10),
        Link(1, 2, 3),
        Link(1, 3, 10, 1),
        Link(2, 3, 50, 5),
        Link(1, 0, 50),
        Link(4, 2, 1),
    ),
    seed=181849422,
    budget=4,
    hosts=(2, 1, 0, 1, 2),
)
"""A host that has reported executes more after a grant of its own, and then withholds nothing."""


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(worlds(), SEEDS, st.booleans())
@example(AFTER_A_REPORT, 357668869, True)
def test_every_entity_executes_the_events_of_one_event_list(
    world: World, schedule: int, promises: bool
):
    run = run_world(world, *scrambled(world.lps, schedule), promises=promises)
    assert run.logs == reference(world)
    assert all(lp.ended for lp in run.lps)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(worlds(), SEEDS)
def test_two_schedules_differ_only_in_the_cost_of_synchronisation(world: World, schedule: int):
    prompt_run = run_world(world, *prompt(world.lps))
    scrambled_run = run_world(world, *scrambled(world.lps, schedule))
    assert prompt_run.messages == scrambled_run.messages
    events = [[lp.statistics.events for lp in run.lps] for run in (prompt_run, scrambled_run)]
    assert events[0] == events[1]


def test_ties_at_one_time_are_executed_in_the_order_of_source_and_sequence():
    """Three LPs send to one entity with equal lookaheads and delays: most arrivals tie."""
    links = tuple(Link(source, 0, 10) for source in (1, 2, 3))
    ties = 0
    for seed in range(20):
        world = World((0, 1, 2, 3), links, seed, budget=8)
        log = run_world(world, *scrambled(4, seed)).logs[0]
        assert log == sorted(log)
        ties += len(log) - len({(time_ps, kind) for time_ps, kind, _, _ in log})
    assert ties > 50
