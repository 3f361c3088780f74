"""Clocks: what is complete for a point of a run."""

from itertools import combinations

from kernbench.explain.check.clocks import (
    START,
    CompletionClock,
    done_of,
    is_done,
    joined,
    joined_all,
    with_done,
    with_known,
)


def done(*commands: int, sip: int = 0) -> CompletionClock:
    clock = START
    for each in commands:
        clock = with_done(clock, (sip, each))
    return clock


def test_a_joint_clock_has_what_either_clock_has() -> None:
    one = with_known(done(5), (1, 8), 7, 30)
    other = with_known(with_done(done(2), (1, 9)), (1, 8), 7, 20)
    both = joined(one, other)
    commands = ((0, 5), (0, 2), (1, 9), (0, 1), (2, 5))
    assert [is_done(both, each) for each in commands] == [True, True, True, False, False]
    assert (both.latest((1, 8), 7), both.latest((1, 8), 6), both.latest((2, 8), 7)) == (30, -1, -1)
    assert joined_all([START, other, one]) == both


def test_clocks_of_the_same_commands_are_equal_after_any_order_of_their_ends() -> None:
    assert done(3, 1, 2) == done(1, 2, 3) == joined(done(2), joined(done(3), done(1)))
    assert done_of(done(3, 1, 2), 0).others == 0


def test_commands_of_two_clocks_are_compared_as_sets() -> None:
    sets = [set(each) for count in range(5) for each in combinations(range(1, 6), count)]
    clocks = [(each, done_of(done(*each), 0)) for each in sets]
    for one, of_one in clocks:
        assert {each for each in range(1, 7) if of_one.has(each)} == one
        rest = of_one.without(0b111110)
        assert {each for each in range(1, 7) if rest >> each & 1} == set(range(1, 6)) - one
        for other, of_other in clocks:
            assert of_one.latest_of_both(of_other) == max(one & other, default=0)
            assert done_of(joined(done(*one), done(*other)), 0) == done_of(done(*one | other), 0)


def test_calls_of_a_command_are_dropped_when_it_is_complete() -> None:
    clock = with_known(with_known(START, (0, 1), 7, 30), (0, 2), 8, 40)
    assert with_done(clock, (0, 1)).known == {(0, 2): {8: 40}}
    assert joined(clock, done(2)).known == {(0, 1): {7: 30}}


def test_a_clock_that_adds_nothing_leaves_the_other_as_it_is() -> None:
    clock = with_known(done(5), (0, 6), 7, 30)
    same = joined(clock, with_known(START, (0, 6), 7, 29))
    assert same.done is clock.done
    assert same.known is clock.known
    assert with_known(clock, (0, 6), 7, 12) is clock
