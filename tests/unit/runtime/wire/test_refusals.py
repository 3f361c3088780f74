"""Counts of refused strangers: a stranger decides how often it comes, but not what that costs."""

from runtime.wire.refusals import Refusals


def test_a_stranger_with_a_new_reason_each_time_takes_a_bounded_memory() -> None:
    refusals = Refusals()
    for number in range(10_000):
        refusals.add(f"there is no LP {number}")
    assert len(refusals.times) == 17
    assert sum(refusals.times.values()) == 10_000
    assert refusals.times["other reasons"] == 10_000 - 16


def test_what_a_stranger_sends_does_not_control_the_terminal() -> None:
    refusals = Refusals()
    refusals.add("\x1b[2J" + "x" * 10**6)
    (reason,) = refusals.times
    assert reason.startswith("?[2Jxxx")
    assert len(reason) < 130
