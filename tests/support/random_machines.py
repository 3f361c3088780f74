"""Random machines with random traffic, for the comparison of two modes event by event.

`python -m tests.support.random_machines FIRST COUNT` prints a line for each of `COUNT` seeds.

A machine has links of any bandwidth, routes over them, endpoints, SimPy processes with stores and
interrupts, and calls at all priorities. Times are small multiples of a unit, so ties are frequent.
Every decision is drawn in the event that makes it: two modes that differ in the order of two events
draw different numbers, and all that follows differs.
"""

import sys
from collections.abc import Generator
from dataclasses import dataclass
from random import Random
from typing import Any
from zlib import crc32

import simpy

from runtime.core.simtime import NEVER_PS
from runtime.model.graph import Link
from runtime.model.routing import Route, Stage
from sip_node.chip.fabric.fabric import Fabric
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.fabric.server import Server
from sip_node.pdes.engine import Engine
from sip_node.pdes.sender import Sender
from tests.support.cores import LateServer
from tests.support.extreme_times import EXTREME_PS, ORIGINS_PS

NODES, LINKS = 6, 8
GATEWAY = NODES - 1
UNIT_PS = 100
BANDWIDTHS = (256, 25.6, 10, 1, 0.1, 204.8, 12.345678901234567, 1 / 3, 0.01, 0.30000000000000004)
SIZES = (0, 1, 64, 256, 4096, 999_999_937)
PRIORITIES = (-1, 0, 1, 2)
Steps = Generator[simpy.Event, Any, None]


class Machine:
    """One machine; two of the same seed differ only if their modes or engines do."""

    def __init__(self, seed: int, engine: type[Engine] = Engine) -> None:
        self.rng = rng = Random(seed)
        self.log: list[tuple[object, ...]] = []
        self.in_flight: dict[int, Sender] = {}
        self.engine = engine()
        self.budget, self.packets = rng.randint(20, 120), 0
        self.store = simpy.Store(self.engine)
        graph: Any = _graph(rng)
        kinds = {"fast": Server, "replaced": LateServer}
        self.fabric = Fabric(self.engine, graph, _Routes(rng), 0, self, kinds)
        for node in range(NODES):
            self.fabric.attach(node, _Endpoint(self, node))
        self.processes = [
            self.engine.process(self._work(name)) for name in range(rng.randint(0, 3))
        ]
        origin_ps, begun = rng.choice(ORIGINS_PS), rng.randint(1, 12)
        self.engine.at(origin_ps, self._begin, begun)

    def run(self) -> list[tuple[object, ...]]:
        """Run to the end in pieces of all kinds; returns what happened, with the counters.

        A machine at the end of time ends with the error of the first event beyond it.
        """
        try:
            self._run()
        except OverflowError as error:
            self.log.append(("beyond time", str(error)))
        servers = [each for each in self.fabric.servers if each is not None]
        self.log += [(s.free_ps, s.busy_ps, s.queued_ps, s.nbytes) for s in servers]
        self.log.append((self.engine.now_ps, self.fabric.sent, self.fabric.delivered))
        return self.log

    def _begin(self, count: int) -> None:
        for _ in range(count):
            self.act()

    def _run(self) -> None:
        rng, engine = self.rng, self.engine
        while engine.next_ps() < NEVER_PS:
            assert engine.peek() == engine.next_ps()
            match rng.randint(0, 4):
                case 0:
                    engine.step()
                case 1:
                    engine.run(until=engine.now_ps + rng.randint(1, 5) * UNIT_PS)
                case _:
                    count = engine.run_before(engine.next_ps() + rng.randint(1, 9) * UNIT_PS)
                    self.log.append(("executed", count))
        self.log.append((engine.events,))

    def departed(self, target: int, entrance_ps: int) -> None:
        """The same as `SendBounds`: a packet to another SIP departs."""
        if target not in self.in_flight:
            self.in_flight[target] = Sender(self.rng.choice(EXTREME_PS))
        self.in_flight[target].departed(entrance_ps)

    def arrived(self, node: int, packet: Packet, tail_ps: int) -> None:
        """The head of a packet is at its target, or at the IO NoC of packets to other SIPs."""
        rng, engine, transfer = self.rng, self.engine, packet.transfer
        self.log.append((node, engine.now_ps, tail_ps, transfer.tag, packet.entrance_ps))
        if transfer.sip:
            sender = self.in_flight[transfer.sip]
            for base_ps in (engine.now_ps, *EXTREME_PS):
                self.log.append(("bound", sender.earliest_send_ps(base_ps)))
            sender.entered(packet.entrance_ps)
        if rng.random() < 0.5:
            self.act()
        if rng.random() < 0.3:
            engine.at(tail_ps, self.log.append, ("tail", transfer.tag, tail_ps))

    def act(self) -> None:
        """Do something that causes later events, until the budget is used up."""
        rng, engine = self.rng, self.engine
        if not self.budget:
            return
        self.budget -= 1
        match rng.randint(0, 6):
            case 0 | 1 | 2:
                self._send()
            case 3:
                delay_ps = rng.randint(0, 4) * UNIT_PS
                priority = rng.choice(PRIORITIES)
                engine.at(engine.now_ps + delay_ps, self._called, priority, priority=priority)
            case 4:
                self.store.put(rng.randint(0, 99))
            case 5:
                victim = rng.choice([*self.processes, None])
                # SimPy refuses a process that interrupts itself.
                if victim not in (None, engine.active_process) and victim.is_alive:
                    victim.interrupt(rng.randint(0, 99))
            case _:
                event = engine.timeout(rng.randint(0, 3) * UNIT_PS)
                event.callbacks.append(lambda _: self._called("timeout"))

    def _send(self) -> None:
        rng, now_ps = self.rng, self.engine.now_ps
        self.packets += 1
        transfer = FabricTransfer(
            kind=Kind.WRITE,
            source_sip=0,
            source_node=0,
            sip=rng.choice((0, 0, 0, 1, 7)),
            node=rng.randrange(NODES),
            tag=self.packets,
        )
        packet = Packet(transfer, 0, rng.choice(SIZES))
        self.fabric.send(packet, rng.randrange(NODES), now_ps + rng.randint(0, 3) * UNIT_PS)

    def _called(self, what: object) -> None:
        self.log.append(("call", self.engine.now_ps, what))
        self.act()

    def _work(self, name: int) -> Steps:
        while self.budget:
            try:
                if self.rng.random() < 0.5:
                    yield self.engine.timeout(self.rng.randint(0, 3) * UNIT_PS)
                    what: object = "timeout"
                else:
                    what = yield self.store.get()
            except simpy.Interrupt as interrupt:
                what = interrupt.cause
            self.log.append(("process", self.engine.now_ps, name, what))
            self.act()


class _Endpoint:
    def __init__(self, machine: Machine, node: int) -> None:
        self._machine, self._node = machine, node

    def accept(self, packet: Any, tail_ps: int) -> None:
        self._machine.arrived(self._node, packet, tail_ps)


@dataclass
class _Graph:
    io_noc: int
    nodes: list[Any]
    links: list[Link]

    @property
    def link_names(self) -> list[str]:
        return [f"l{link.index}" for link in self.links]


@dataclass
class _Node:
    kind: str
    name: str


def _graph(rng: Random) -> _Graph:
    nodes = [_Node(rng.choice(("fast", "fast", "replaced")), f"n{node}") for node in range(NODES)]
    links = [
        Link(
            index=index,
            source=rng.randrange(NODES),
            target=rng.randrange(NODES),
            mm=0.0,
            wire_ps=0,
            bw_gbs=rng.choice(BANDWIDTHS),
        )
        for index in range(LINKS)
    ]
    # A link that only delays is no stage of a route.
    links.append(Link(index=LINKS, source=0, target=1, mm=0.0, wire_ps=5, bw_gbs=None))
    return _Graph(GATEWAY, nodes, links)


class _Routes:
    """A random route for each pair of nodes, some of them without any link."""

    def __init__(self, rng: Random) -> None:
        delays = [rng.randint(0, 3) * UNIT_PS for _ in range(2 * LINKS)]
        stages = [Stage(link, *delays[2 * link :][:2]) for link in range(LINKS)]
        self._routes = {
            (source, target): Route(
                (source, target),
                tuple(rng.choice(stages) for _ in range(rng.choice((0, 1, 3, 9)))),
                source,
                target,
            )
            for source in range(NODES)
            for target in range(NODES)
        }

    def route(self, source: int, target: int) -> Route:
        return self._routes[source, target]

    def stages(self, source: int, target: int) -> tuple[Stage, ...]:
        return self._routes[source, target].stages


def main(first: int, count: int) -> None:
    """Print what happens in the machines of some seeds."""
    for seed in range(first, first + count):
        machine = Machine(seed)
        log = repr(machine.run())
        print(f"machine {seed}: {machine.engine.events} events, {crc32(log.encode()):08x}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
