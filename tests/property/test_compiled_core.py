"""The compiled core and the reference in one process: the same order of everything."""

from heapq import heappush
from typing import Any

import pytest

from sip_node.chip.fabric.fabric import Fabric, ReferenceFabric
from sip_node.chip.fabric.packet import Packet, ReferencePacket
from sip_node.chip.fabric.server import ReferenceServer, Server
from sip_node.compiled.choice import IS_COMPILED
from sip_node.pdes.engine import Engine, ReferenceEngine
from sip_node.pdes.sender import ReferenceSender, Sender
from tests.support.random_machines import Core, Machine

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")

MACHINES = 600


class LateServer(Server):
    """A class of `impl:`: a link of the compiled fabric with a method in Python."""

    def reserve(self, head_ps: int, tail_ps: int, nbytes: int) -> tuple[int, int]:
        return super().reserve(head_ps + 7, tail_ps + 7, nbytes)


class LateReference(ReferenceServer):
    """The same class for the reference."""

    def reserve(self, head_ps: int, tail_ps: int, nbytes: int) -> tuple[int, int]:
        return super().reserve(head_ps + 7, tail_ps + 7, nbytes)


class NewestFirst(ReferenceEngine):
    """An engine with a wrong tie rule: of two calls at one time the newer one runs first."""

    def at(self, time_ps: int, function: Any, *args: object, priority: int = 1) -> None:
        heappush(self._entries, (time_ps, priority, -next(self._eid), (function, args)))


REFERENCE = Core(
    engine=ReferenceEngine,
    fabric=ReferenceFabric,
    packet=ReferencePacket,
    sender=ReferenceSender,
    server=ReferenceServer,
    replacement=LateReference,
)
COMPILED = Core(
    engine=Engine,
    fabric=Fabric,
    packet=Packet,
    sender=Sender,
    server=Server,
    replacement=LateServer,
)


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
