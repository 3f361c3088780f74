"""Ranks that keep others waiting in a collective, from the reports of the LPs."""

from coordinator.watch.late_ranks import CollectiveWaits, LateRanks
from runtime.wire.control import GroupCalls, RankActivity, SlowCall

LIMIT_S = 10.0


def report(
    rank: int,
    python_s: float,
    calls: int,
    open_call: int = 0,
    slow: tuple[tuple[int, float], ...] = (),
    ranks: tuple[int, ...] = (0, 1, 2),
) -> RankActivity:
    group = GroupCalls(
        group="world",
        ranks=ranks,
        timeout_s=LIMIT_S,
        calls=calls,
        open_call=open_call,
        open_name="all_reduce" if open_call else "",
        slow_calls=tuple(SlowCall(call, "barrier", seconds) for call, seconds in slow),
    )
    return RankActivity(rank, python_s, (group,))


def late(
    name: str, call: int, waiting: tuple[int, ...], missing: tuple[int, ...], *, computes: bool
) -> LateRanks:
    return LateRanks(
        name=name,
        call=call,
        group="world",
        limit_s=LIMIT_S,
        by_group=True,
        waiting=waiting,
        missing=missing,
        late=missing[0],
        computes=computes,
    )


def test_a_rank_that_computes_while_another_waits_for_it_is_late_after_the_limit():
    waits = CollectiveWaits(None)
    waits.received([report(0, 100.0, calls=1)])
    waits.received([report(1, 1.0, calls=2, open_call=2)])
    waits.received([report(0, 109.9, calls=1)], stretch_s=9.9)
    assert waits.overdue() is None
    waits.received([report(0, 110.0, calls=1)], stretch_s=10.0)
    assert waits.overdue() == late("all_reduce", 2, (1,), (0, 2), computes=True)


def test_a_rank_that_has_called_the_collective_is_not_late_in_it():
    waits = CollectiveWaits(None)
    waits.received([report(1, 1.0, calls=2, open_call=2)])
    waits.received([report(0, 50.0, calls=2, open_call=2)], stretch_s=50.0)
    assert waits.overdue() is None


def test_the_time_that_a_rank_computed_before_the_wait_does_not_count():
    waits = CollectiveWaits(None)
    waits.received([report(0, 9.0, calls=1)], stretch_s=9.0)
    waits.received([report(1, 1.0, calls=2, open_call=2)])
    waits.received([report(0, 18.9, calls=1)], stretch_s=18.9)
    assert waits.overdue() is None


def test_in_one_process_a_rank_has_waited_for_as_long_as_the_other_computes():
    waits = CollectiveWaits(None)
    waits.received([report(0, 0.0, calls=0), report(1, 0.0, calls=0)])
    ranks = [report(0, 10.5, calls=0), report(1, 0.1, calls=1, open_call=1)]
    waits.received(ranks, stretch_s=10.4)
    found = waits.overdue()
    assert found is not None
    assert (found.missing, found.waiting) == ((0, 2), (1,))


def test_a_rank_that_called_after_computing_longer_than_the_others_was_late():
    waits = CollectiveWaits(None)
    waits.received([report(0, 11.0, calls=2, slow=((2, 11.0),)), report(1, 0.1, calls=2)])
    assert waits.overdue() is None, "rank 2 has not called, and may compute as well"
    waits.received([report(2, 0.1, calls=2)])
    assert waits.overdue() == late("barrier", 2, (1, 2), (0,), computes=False)


def test_ranks_that_compute_equally_long_keep_none_waiting():
    waits = CollectiveWaits(None)
    waits.received([report(rank, 50.0, calls=1, slow=((1, 50.0 + rank),)) for rank in range(3)])
    assert waits.overdue() is None


def test_a_limit_of_the_command_line_replaces_that_of_the_group():
    activity = [
        report(0, 20.0, calls=1, slow=((1, 20.0),), ranks=(0, 1)),
        report(1, 0.0, calls=1, ranks=(0, 1)),
    ]
    for limit_s, expected in ((0.0, None), (30.0, None), (5.0, (5.0, False))):
        waits = CollectiveWaits(limit_s)
        waits.received(activity)
        found = waits.overdue()
        assert (found and (found.limit_s, found.by_group)) == expected


def test_the_longest_limit_of_all_groups_is_known():
    waits = CollectiveWaits(None)
    assert waits.longest_limit_s == 0
    waits.received([report(0, 0.0, calls=0)])
    assert waits.longest_limit_s == LIMIT_S
