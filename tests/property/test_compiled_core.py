"""The compiled core and the interpreter: the same order of everything."""

from typing import Any

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.pdes.engine import Engine
from tests.support.random_accesses import AccessWorld
from tests.support.random_machines import Machine
from tests.support.random_transfers import TransferWorld
from tests.support.two_modes import differing

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")

MACHINES, MEMORIES, TRANSFER_WORLDS = 600, 60, 150


class NewestFirst(Engine):
    """An engine with a wrong tie rule: of two calls at one time the newer one runs first."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = 0

    def at(self, time_ps: int, function: Any, *args: object, priority: int = 1) -> None:
        self._calls += 1
        super().at(time_ps, function, *args, priority=priority - self._calls)


def test_random_machines_run_alike_in_both_modes() -> None:
    assert differing("tests.support.random_machines", 0, MACHINES) == []


def test_random_machines_have_many_events() -> None:
    machines = [Machine(seed) for seed in range(20)]
    for machine in machines:
        machine.run()
    assert sum(machine.engine.events for machine in machines) > 50 * len(machines)


def test_a_wrong_rule_for_ties_is_seen() -> None:
    assert any(Machine(seed, NewestFirst).run() != Machine(seed).run() for seed in range(5))


def test_random_accesses_are_served_alike_in_both_modes() -> None:
    assert differing("tests.support.random_accesses", 0, MEMORIES) == []


def test_random_accesses_are_many() -> None:
    assert sum(len(AccessWorld(seed).run()) for seed in range(MEMORIES)) > 50 * MEMORIES


def test_random_transfers_move_alike_in_both_modes() -> None:
    assert differing("tests.support.random_transfers", 0, TRANSFER_WORLDS) == []


def test_random_transfers_have_many_events() -> None:
    worlds = [TransferWorld(seed) for seed in range(10)]
    logs = [world.run() for world in worlds]
    assert sum(world.engine.events for world in worlds) > 100 * len(worlds)
    assert {"service", "written", "load", "left", "landed"} <= {
        line[0] for log in logs for line in log
    }
