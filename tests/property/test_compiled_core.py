"""The compiled core and the reference in one process: the same order of everything."""

from heapq import heappush
from typing import Any

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.pdes.engine import ReferenceEngine
from tests.support.cores import COMPILED, REFERENCE
from tests.support.random_machines import Machine
from tests.support.random_transfers import TransferWorld

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")

MACHINES, TRANSFER_WORLDS = 600, 150


class NewestFirst(ReferenceEngine):
    """An engine with a wrong tie rule: of two calls at one time the newer one runs first."""

    def at(self, time_ps: int, function: Any, *args: object, priority: int = 1) -> None:
        heappush(self._entries, (time_ps, priority, -next(self._eid), (function, args)))


def test_both_cores_give_the_same_order_on_random_machines() -> None:
    events = 0
    for seed in range(MACHINES):
        compiled = Machine(COMPILED, seed)
        assert compiled.run() == Machine(REFERENCE, seed).run(), f"machine {seed}"
        events += compiled.engine.events
    assert events > 50 * MACHINES


def test_a_wrong_rule_for_ties_is_seen() -> None:
    wrong = REFERENCE._replace(engine=NewestFirst)
    assert any(Machine(wrong, seed).run() != Machine(COMPILED, seed).run() for seed in range(5))


def test_both_cores_move_random_transfers_alike() -> None:
    events = 0
    for seed in range(TRANSFER_WORLDS):
        compiled = TransferWorld(COMPILED, seed)
        assert compiled.run() == TransferWorld(REFERENCE, seed).run(), f"world {seed}"
        events += compiled.engine.events
    assert events > 100 * TRANSFER_WORLDS
