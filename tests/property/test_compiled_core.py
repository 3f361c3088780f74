"""The compiled core and the reference in one process: the same order of everything."""

from heapq import heappush
from typing import Any

import pytest

from sip_node.chip.fabric import egress_stream, packet_switch
from sip_node.chip.fabric.fabric import Fabric, ReferenceFabric
from sip_node.chip.fabric.packet import Packet, ReferencePacket
from sip_node.chip.fabric.server import ReferenceServer, Server
from sip_node.chip.memory import memory_packets, port_turns, transaction_queue
from sip_node.chip.pe import data_landing, read_window
from sip_node.compiled.choice import IS_COMPILED
from sip_node.pdes.engine import Engine, ReferenceEngine
from sip_node.pdes.sender import ReferenceSender, Sender
from tests.support.random_machines import Core, Machine
from tests.support.random_transfers import Classes, TransferWorld

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")

MACHINES, TRANSFER_WORLDS = 600, 150


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


COMPILED_LOOPS: Classes = {
    "Engine": Engine,
    "Fabric": Fabric,
    "Server": Server,
    "DataLanding": data_landing.DataLanding,
    "EgressStream": egress_stream.EgressStream,
    "MemoryPackets": memory_packets.MemoryPackets,
    "PacketSwitch": packet_switch.PacketSwitch,
    "PortTurns": port_turns.PortTurns,
    "ReadWindow": read_window.ReadWindow,
    "TransactionQueue": transaction_queue.TransactionQueue,
}
REFERENCE_LOOPS: Classes = {
    "Engine": ReferenceEngine,
    "Fabric": ReferenceFabric,
    "Server": ReferenceServer,
    "DataLanding": data_landing.ReferenceDataLanding,
    "EgressStream": egress_stream.ReferenceEgressStream,
    "MemoryPackets": memory_packets.ReferenceMemoryPackets,
    "PacketSwitch": packet_switch.ReferencePacketSwitch,
    "PortTurns": port_turns.ReferencePortTurns,
    "ReadWindow": read_window.ReferenceReadWindow,
    "TransactionQueue": transaction_queue.ReferenceTransactionQueue,
}


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
        compiled = TransferWorld(COMPILED_LOOPS, seed)
        assert compiled.run() == TransferWorld(REFERENCE_LOOPS, seed).run(), f"world {seed}"
        events += compiled.engine.events
    assert events > 100 * TRANSFER_WORLDS
