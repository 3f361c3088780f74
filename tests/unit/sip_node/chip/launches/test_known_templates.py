"""Recorded launches: how many are kept, and which are recorded."""

from types import SimpleNamespace
from typing import Any

import pytest

from sip_node.chip.launch_keys import NotRepeated
from sip_node.chip.launches.known_templates import KnownTemplates, Recorded


def recorded(nbytes: int) -> Any:
    return SimpleNamespace(nbytes=nbytes)


def test_launches_of_one_key_are_recorded_a_number_of_times() -> None:
    known = KnownTemplates[Any](most_bytes=100, most_attempts=2)
    assert not known.has_come("add")
    assert known.has_come("add")
    assert [known.attempts("add") for _ in range(3)] == [True, True, False]


def test_a_launch_that_is_repeated_is_recorded_once_more() -> None:
    known = KnownTemplates[Any](most_bytes=100, most_attempts=0)
    known.has_come("add")
    known.keep("state", recorded(1))
    known.repeated("state", "add")
    assert [known.attempts("add") for _ in range(2)] == [True, False]


def test_a_launch_that_is_given_up_is_recorded_no_more() -> None:
    known = KnownTemplates[Any](most_bytes=100, most_attempts=5)
    known.has_come("add")
    known.give_up("add")
    assert known.has_come("add")
    assert not known.attempts("add")


def test_the_states_used_last_are_kept() -> None:
    known = KnownTemplates[Any](most_bytes=10, most_attempts=5)
    first, second, third = recorded(4), recorded(6), recorded(5)
    known.keep("first", first)
    known.keep("second", second)
    known.repeated("first", "add")
    known.keep("third", third)
    assert [list(known.of(each)) for each in ("first", "second", "third")] == [[first], [], [third]]


class LearnedOnce:
    """Launches with a template, or with none, which count how often it is made."""

    nbytes = 3

    def __init__(self, template: str | None) -> None:
        self._template, self.made = template, 0

    def template(self) -> str:
        self.made += 1
        if self._template is None:
            raise NotRepeated
        return self._template


@pytest.mark.parametrize("template", ["a template", None], ids=str)
def test_a_recorded_launch_makes_its_template_once_or_none(
    template: str | None,
) -> None:
    learned = LearnedOnce(template)
    recorded = Recorded(learned)
    assert (recorded.nbytes, learned.made) == (3, 0)
    assert [recorded.template for _ in range(2)] == [template, template]
    assert learned.made == 1
