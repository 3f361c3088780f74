"""The agenda of the routers: one event for a cycle, after what else happens at its time."""

from runtime.core.simtime import NEVER_PS
from sip_node.chip.fabric.cycle_queue import CycleQueue
from sip_node.pdes.engine import Engine


class _Arbiter:
    def __init__(self, log: list[tuple[str, int]], name: str) -> None:
        self._log, self._name, self.requests = log, name, []

    def arbitrate(self, now: int) -> None:
        self._log.append((f"{self._name}{len(self.requests)}", now))
        self.requests.clear()


class _Channel:
    def __init__(self, arbiter: _Arbiter) -> None:
        self.arbiter = arbiter


def test_an_arbiter_is_called_once_in_a_cycle_and_idle_cycles_have_no_event() -> None:
    engine, log = Engine(), []
    queue = CycleQueue(engine, 500)
    a, b = _Arbiter(log, "a"), _Arbiter(log, "b")
    for arbiter, cycle in ((a, 7), (b, 7), (a, 7), (a, 9)):
        queue.add(_Channel(arbiter), cycle)
    engine.at(3500, log.append, ("event at the same time", 3500))
    engine.run_before(NEVER_PS)
    assert log == [("event at the same time", 3500), ("a2", 7), ("b1", 7), ("a1", 9)]
    assert engine.events == 3
