"""Clocks: what is complete for a point of a run."""

from kernbench.explain.check.clocks import START, is_done, joined, joined_all, with_done, with_known


def test_a_joint_clock_has_what_either_clock_has() -> None:
    one = with_known(with_done(START, 0, 5), 7, 30)
    other = with_known(with_done(with_done(START, 0, 2), 1, 9), 7, 20)
    both = joined(one, other)
    assert [is_done(both, *each) for each in ((0, 5), (0, 2), (1, 9), (0, 1), (2, 5))] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert both.known == {7: 30}
    assert joined_all([START, other, one]) == both


def test_a_clock_that_adds_nothing_leaves_the_other_as_it_is() -> None:
    clock = with_known(with_done(START, 0, 5), 7, 30)
    same = joined(clock, with_known(START, 7, 29))
    assert same.done is clock.done
    assert same.known is clock.known
    assert with_known(clock, 7, 12) is clock
