"""Random transfers between PEs and memories on a small fabric, for the comparison of two modes.

`python -m tests.support.random_transfers FIRST COUNT` prints a line for each of `COUNT` seeds.

PEs have a TCM behind one port, a DMA engine's loops over packets, and one memory has a transaction
queue. Everything that a component is called for is logged with its time.
"""

import sys
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import Any
from zlib import crc32

from runtime.core.simtime import NEVER_PS
from runtime.model.routing import Route, Stage
from sip_node.chip.fabric.egress_stream import EgressStream
from sip_node.chip.fabric.fabric import Fabric
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.fabric.packet_switch import PacketSwitch
from sip_node.chip.fabric.server import Server
from sip_node.chip.mapping.strided_block import StridedBlock
from sip_node.chip.memory.memory_packets import MemoryPackets, TransferStore
from sip_node.chip.memory.memory_port import PortTurns
from sip_node.chip.memory.storage import SramPorts
from sip_node.chip.memory.transaction_queue import AccessQueue
from sip_node.chip.pe.read_window import DataLanding, ReadWindow
from sip_node.pdes.engine import Engine
from tests.support.extreme_times import ORIGINS_PS

PES, PACKET_BYTES, CONTROL_BYTES = 3, 256, 16
MEMORY = PES
SIZES = (1, 255, 256, 300, 1024, 2000)


class _Store(TransferStore):
    """A memory that logs what it stores and loads."""

    def __init__(self, world: "TransferWorld", node: int, service: Any) -> None:
        super().__init__(keeps_data=world.rng.random() < 0.5)
        self._world, self._node = world, node
        self.packets = MemoryPackets(
            engine=world.engine,
            fabric=world.fabric,
            node=node,
            base=node << 20,
            service=service,
            packet_bytes=PACKET_BYTES,
            latency_ps=world.rng.choice((0, 1, 700)),
            store=self,
        )
        if world.rng.random() < 0.3:
            self.packets.on_service = lambda packet: world.note("service", packet.transfer.tag)

    def written(self, packet: Packet) -> None:
        self._world.note("written", packet.transfer.tag)
        self._world.act()

    def answer(self, request: FabricTransfer) -> FabricTransfer:
        return FabricTransfer(
            kind=Kind.DATA,
            source_sip=0,
            source_node=self._node,
            sip=0,
            node=request.source_node,
            tag=request.tag,
            total=request.total,
        )

    def load(self, data: FabricTransfer) -> None:
        self._world.note("load", data.tag)


class _Pe:
    """The parts of a PE that handle packets."""

    def __init__(self, world: "TransferWorld", node: int) -> None:
        rng = world.rng
        port = Server(f"tcm{node}", rng.choice((256, 51.2)))
        self.store = _Store(world, node, PortTurns(world.engine, port))
        self.stream = EgressStream(
            world.engine, port, world.fabric, node, lambda *left: world.noted("left", *left)
        )
        self.window = ReadWindow(
            engine=world.engine,
            fabric=world.fabric,
            node=node,
            places=rng.choice((1, 2, 16)),
            packet_bytes=PACKET_BYTES,
            control_bytes=CONTROL_BYTES,
        )
        self.landing = DataLanding(
            world.engine,
            port,
            world.fabric,
            node,
            self.window,
            lambda *landed: world.noted("landed", *landed),
        )
        memory = dict.fromkeys((Kind.WRITE, Kind.READ), self.store.packets.accept)
        world.fabric.attach(node, PacketSwitch(memory | {Kind.DATA: self.landing.accept}))


class TransferWorld:
    """One machine; two of the same seed differ only if their modes do."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.log: list[tuple[object, ...]] = []
        self.budget, self.tags = self.rng.randint(4, 14), 0
        self.engine = Engine()
        self.fabric = Fabric(
            self.engine,
            SimpleNamespace(
                nodes=[_Node()] * 4,
                links=[_Link(index) for index in range(4)],
                link_names=("link",) * 4,
                io_noc=9,
            ),
            _Routes(self.rng),
            0,
            SimpleNamespace(in_flight={}),
            {"any": Server},
        )
        self._pes = [_Pe(self, node) for node in range(PES)]
        queue = AccessQueue(self.engine, SramPorts("sram", 128))
        self.fabric.attach(MEMORY, _Store(self, MEMORY, queue).packets)
        self.engine.at(self.rng.choice(ORIGINS_PS), self._begin)

    def run(self) -> list[tuple[object, ...]]:
        """Run to the end, or to the first event beyond time; returns what happened."""
        try:
            self.engine.run_before(NEVER_PS)
        except OverflowError as error:
            self.log.append((str(error),))
        self.note("end", self.engine.events, self.fabric.sent, self.fabric.delivered)
        return self.log

    def _begin(self) -> None:
        while self.tags < 3:
            self.act()

    def note(self, what: str, *numbers: int) -> None:
        """Log something at the time of the event."""
        self.log.append((what, self.engine.now_ps, *numbers))

    def noted(self, what: str, transfer: FabricTransfer, time_ps: int) -> None:
        """Log a time of a transfer; it may cause another one."""
        self.note(what, transfer.tag, time_ps)
        self.engine.at(time_ps, self.act)

    def act(self) -> None:
        """Begin a transfer between random nodes."""
        if not self.budget:
            return
        self.budget -= 1
        self.tags += 1
        rng = self.rng
        source, target, total = rng.randrange(PES), rng.randrange(PES + 1), rng.choice(SIZES)
        pe = self._pes[source]
        match rng.choice(("write", "read", "copy")):
            case "write":
                write = self._transfer(Kind.WRITE, source, target, total)
                pe.stream.start(write, rng.choice((64, PACKET_BYTES)))
            case "copy":
                pe.landing.forward(self._transfer(Kind.WRITE, source, MEMORY, total))
                pe.window.begin(self._transfer(Kind.READ, source, target, total))
            case _:
                pe.window.begin(self._transfer(Kind.READ, source, target, total))

    def _transfer(self, kind: Kind, source: int, target: int, total: int) -> FabricTransfer:
        return FabricTransfer(
            kind=kind,
            source_sip=0,
            source_node=source,
            sip=0,
            node=target,
            address=(target << 20) + self.rng.randrange(4096),
            tag=self.tags,
            total=total,
            rows=self.rng.choice((None, None, StridedBlock(32, 64))),
        )


@dataclass
class _Node:
    kind: str = "any"
    name: str = "node"


@dataclass
class _Link:
    index: int
    source: int = 0
    target: int = 0
    bw_gbs: float = 64.0


class _Routes:
    """A route of one to four of the links between any two nodes."""

    def __init__(self, rng: Random) -> None:
        stages = [Stage(index, 0, rng.randint(0, 4) * 500) for index in range(4)]
        self._stages = {
            (source, target): tuple(rng.sample(stages, rng.randint(1, 4)))
            for source in range(PES + 1)
            for target in range(PES + 1)
        }

    def route(self, source: int, target: int) -> Route:
        return Route((source, target), self._stages[source, target], source, target)

    def stages(self, source: int, target: int) -> tuple[Stage, ...]:
        return self._stages[source, target]


def main(first: int, count: int) -> None:
    """Print what happens in the machines of some seeds."""
    for seed in range(first, first + count):
        world = TransferWorld(seed)
        log = repr(world.run())
        print(f"world {seed}: {world.engine.events} events, {crc32(log.encode()):08x}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
