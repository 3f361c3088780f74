"""The agenda of the routers: one event for a cycle, after what else happens at its time."""

import gc

import pytest

from runtime.core.simtime import NEVER_PS
from sip_node.chip.fabric.clocked.cycle_queue import Arbiter, CycleQueue, Requester
from sip_node.pdes.engine import Engine

PERIOD_PS = 500


class _Arbiter(Arbiter):
    def __init__(self, queue: CycleQueue, log: list[tuple[str, int]], name: str) -> None:
        super().__init__(queue)
        self._log, self._name = log, name

    def arbitrate(self, now: int) -> None:
        self._log.append((self._name, now))
        super().arbitrate(now)


def test_an_arbiter_is_called_once_in_a_cycle_and_idle_cycles_have_no_event() -> None:
    engine, log = Engine(), list[tuple[str, int]]()
    queue = CycleQueue(engine, PERIOD_PS)
    a, b = _Arbiter(queue, log, "a"), _Arbiter(queue, log, "b")
    requesters = [Requester(arbiter) for arbiter in (a, b, a, a)]
    for requester, cycle in zip(requesters, (7, 7, 7, 9), strict=True):
        queue.add(requester, cycle)
    engine.at(7 * PERIOD_PS, log.append, ("event at the same time", 7))
    engine.run_before(NEVER_PS)
    assert log == [("event at the same time", 7), ("a", 7), ("b", 7), ("a", 9)]
    assert engine.events == 3


def test_cycles_of_one_place_in_the_agenda_are_different_cycles() -> None:
    engine, log = Engine(), list[tuple[str, int]]()
    queue = CycleQueue(engine, PERIOD_PS)
    arbiter = _Arbiter(queue, log, "a")
    # Both orders of the cycles in the list of the place.
    requesters = [Requester(arbiter) for _ in range(4)]
    for requester, cycle in zip(requesters, (3, 3 + 1024, 3 + 512, 5), strict=True):
        queue.add(requester, cycle)
    engine.run_before(NEVER_PS)
    assert [cycle for _, cycle in log] == [3, 5, 3 + 512, 3 + 1024]


def test_a_queue_holds_what_has_requests() -> None:
    engine, log = Engine(), list[tuple[str, int]]()
    queue = CycleQueue(engine, PERIOD_PS)
    for number in range(100):
        queue.add(Requester(_Arbiter(queue, log, f"{number}")), 7 + number % 2)
    gc.collect()
    engine.run_before(NEVER_PS)
    assert len(log) == len(set(log)) == 100


def test_a_request_to_an_arbiter_of_another_queue_is_refused() -> None:
    engine = Engine()
    queue, other = CycleQueue(engine, PERIOD_PS), CycleQueue(engine, PERIOD_PS)
    requester = Requester(Arbiter(other))
    with pytest.raises(AssertionError, match="own arbiters"):
        queue.add(requester, 1)
