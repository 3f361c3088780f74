"""Memory of a calendar, and its equality in C; `sip_node/pdes/test_engine.py` tests the rest."""

import gc
import sys
import weakref
from typing import Any

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.simtime import NEVER_PS
from sip_node.kernel import calendar
from sip_node.pdes.engine import Engine
from tests.support.interpreted import interpreted

compiled = pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")


def test_no_object_is_kept_or_lost_by_many_events() -> None:
    engine, subject = Engine(), object()
    before = sys.getrefcount(subject)
    for round_ in range(20):
        for index in range(500):
            engine.at(engine.now_ps + index * 7919 % 97, id, subject)
        # Of every second round some events are pending when the next one begins.
        engine.run_before(engine.now_ps + (50 if round_ % 2 else 200))
    engine.run_before(NEVER_PS)
    assert sys.getrefcount(subject) == before
    assert engine.events == 10_000


def test_a_call_that_fails_is_released() -> None:
    engine, subject = Engine(), object()

    def fail(_: object) -> None:
        raise LookupError

    before = sys.getrefcount(subject)
    for _ in range(10):
        engine.at(1, fail, subject)
    for _ in range(10):
        with pytest.raises(LookupError):
            engine.step()
    assert sys.getrefcount(subject) == before
    assert engine.next_ps() == NEVER_PS


def test_the_garbage_collector_sees_what_waits_in_the_calendar() -> None:
    class Component:
        def __init__(self) -> None:
            self.engine = Engine()
            self.engine.at(5, self.called)

        def called(self) -> None:
            pass

    component = Component()
    reference = weakref.ref(component)
    del component
    # All of it is young.
    gc.collect(1)
    assert reference() is None


@compiled
def test_both_versions_have_the_same_priorities() -> None:
    names = ("ARRIVALS_FIRST", "NORMAL", "AFTER_ALL")
    in_python = interpreted("sip_node.kernel.calendar")
    assert [getattr(calendar, name) for name in names] == [-1, 1, 2]
    assert [getattr(in_python, name) for name in names] == [-1, 1, 2]


@compiled
def test_a_priority_beyond_the_key_is_refused() -> None:
    with pytest.raises(OverflowError, match="priority 40000"):
        Engine().at(1, print, priority=40_000)


@compiled
def test_events_that_were_withdrawn_come_in_their_order_when_they_are_put_back() -> None:
    engine: Any = Engine()
    called = list[str]()
    for name, time_ps, priority in (
        ("third", 7, calendar.NORMAL),
        ("first", 5, calendar.NORMAL),
        ("fourth", 7, calendar.NORMAL),
        ("second", 7, calendar.ARRIVALS_FIRST),
    ):
        engine.at(time_ps, called.append, name, priority=priority)
    events = engine.events_to_come()
    names = ["first", "second", "third", "fourth"]
    assert [each.subject[1] for each in events] == [(name,) for name in names]
    assert [each.time_ps for each in events] == [5, 7, 7, 7]
    engine.withdraw()
    assert engine.next_ps() == NEVER_PS
    engine.at(7, called.append, "fifth")
    engine.put_back(events[2:])
    engine.put_back(events[:2])
    engine.at(7, called.append, "sixth")
    engine.run_before(NEVER_PS)
    assert called == [*names, "fifth", "sixth"]
    assert engine.events == 6


@compiled
def test_the_clock_may_go_back_to_events_that_were_put_back() -> None:
    engine: Any = Engine()
    times = list[int]()
    for time_ps in (4, 9):
        engine.at(time_ps, lambda: times.append(engine.now_ps))
    held, *_ = engine.events_to_come()
    engine.withdraw()
    engine.at(9, lambda: times.append(engine.now_ps))
    engine.run_before(NEVER_PS)
    engine.now_ps = 3
    engine.put_back([held])
    engine.run_before(NEVER_PS)
    assert times == [9, 4]
