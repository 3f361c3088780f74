"""Recorded launches: how many are kept, and which are recorded."""

from types import SimpleNamespace
from typing import Any

from sip_node.chip.launches.known_templates import KnownTemplates


def recorded(size: int) -> Any:
    return SimpleNamespace(size=size)


def test_launches_of_one_key_are_recorded_a_number_of_times() -> None:
    known = KnownTemplates[Any](most_records=100, most_attempts=2)
    assert not known.has_come("add")
    assert known.has_come("add")
    assert [known.attempts("add") for _ in range(3)] == [True, True, False]


def test_a_launch_that_is_repeated_is_recorded_once_more() -> None:
    known = KnownTemplates[Any](most_records=100, most_attempts=0)
    known.has_come("add")
    known.keep("state", recorded(1))
    known.repeated("state", "add")
    assert [known.attempts("add") for _ in range(2)] == [True, False]


def test_a_launch_that_is_given_up_is_recorded_no_more() -> None:
    known = KnownTemplates[Any](most_records=100, most_attempts=5)
    known.has_come("add")
    known.give_up("add")
    assert known.has_come("add")
    assert not known.attempts("add")


def test_the_states_used_last_are_kept() -> None:
    known = KnownTemplates[Any](most_records=10, most_attempts=5)
    first, second, third = recorded(4), recorded(6), recorded(5)
    known.keep("first", first)
    known.keep("second", second)
    known.repeated("first", "add")
    known.keep("third", third)
    assert [list(known.of(each)) for each in ("first", "second", "third")] == [[first], [], [third]]
