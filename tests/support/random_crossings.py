"""Random traffic between SIPs on one engine, for the comparison of both modes packet by packet.

Some links lead to the inbox of their SIP, the others by messages, as between LPs. Every decision is
drawn in the event that makes it, so two modes that differ once differ in all that follows. As a
program it prints what happens in a number of systems, one line for each, with its packets.
"""

import sys
from random import Random
from types import SimpleNamespace
from typing import Any

from runtime.core.simtime import NEVER_PS
from sip_node.chip.bounds.command_bounds import CommandBounds
from sip_node.chip.bounds.send_bounds import SendBounds
from sip_node.chip.chip import chip_spec
from sip_node.chip.context import ChipSpec
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.fabric.server import Server
from sip_node.chip.mapping.strided_block import StridedBlock
from sip_node.chip.ports.packet_runs import ArrivingTransfers, PacketRuns
from sip_node.chip.ports.ucie_ports import UciePorts
from sip_node.chip.records.op_log import OpLog
from sip_node.pdes.engine import Engine
from tests.support.cores import LateServer
from tests.support.extreme_times import EXTREME_PS, ORIGINS_PS
from tests.support.topologies import small

UNIT_PS = 1000
SIZES = (1, 64, 256, 4096)


class RandomCrossings:
    """SIPs without chips: a packet that enters a SIP ends there."""

    def __init__(self, spec: ChipSpec, seed: int, runs: type[PacketRuns] = PacketRuns) -> None:
        self.rng = rng = Random(seed)
        self.log: list[tuple[object, ...]] = []
        self._runs, self.engine, self.budget = runs, Engine(), rng.randint(10, 60)
        self.sips = spec.sips.sips
        servers = {kind: rng.choice((Server, LateServer)) for kind in ("ucie", "switch")}
        self.op_logs = [OpLog(None) for _ in range(self.sips)]
        self.records = [log.begin_recording() for log in self.op_logs]
        self.bounds = [SendBounds({}, CommandBounds(), answers=True) for _ in range(self.sips)]
        self.ports = [UciePorts(self._context(spec, sip, servers)) for sip in range(self.sips)]
        self.runs: list[tuple[int, PacketRuns]] = []
        self.arriving = ArrivingTransfers(dict.fromkeys(range(self.sips), 0))
        for sip, ports in enumerate(self.ports):
            ports.connect({other: self._end(sip, other) for other in spec.sips.neighbours(sip)})
        self.engine.at(rng.choice(ORIGINS_PS), self._begin_some, rng.randint(1, 6))

    def run(self) -> list[tuple[object, ...]]:
        """Run to the end in steps, with messages between them; returns what happened.

        A system at the end of time ends with the error of the first event beyond it.
        """
        try:
            self._run()
        # A time beyond the end of time is in no event, and in no message.
        except (OverflowError, ValueError) as error:
            self.log.append(("beyond time", str(error)))
        self.log += [tuple(records) for records in self.records]
        self.log += [(ports.sent, ports.received) for ports in self.ports]
        self.log += [(port.busy_ps, port.nbytes) for each in self.ports for port in each.ports]
        self.log.append((self.engine.now_ps,))
        return self.log

    def _run(self) -> None:
        engine = self.engine
        while (next_ps := engine.next_ps()) < NEVER_PS:
            engine.run_before(next_ps + self.rng.randint(1, 9) * UNIT_PS)
            for sip, ports in enumerate(self.bounds):
                for base_ps in (next_ps, *EXTREME_PS):
                    self.log.append(("bounds", sip, *ports.earliest_send_ps(base_ps)[1].items()))
            for target, runs in self.runs:
                for sip, message in runs.take():
                    self.log.append(("message", sip, message))
                    self.arriving.receive(message, self.ports[target])
        self.log.append((engine.events,))

    def entered(self, sip: int, packet: Any, tail_ps: int) -> None:
        """A packet has entered the SIP that it is for."""
        at = (packet.entrance_ps, packet.came_from, packet.transfer.tag, packet.begin, packet.last)
        self.log.append((sip, self.engine.now_ps, tail_ps, *at))
        if self.rng.random() < 0.4:
            self._begin()

    def _context(self, spec: ChipSpec, sip: int, servers: dict[str, Any]) -> Any:
        def send(packet: Any, _origin: int, tail_ps: int) -> None:
            self.entered(sip, packet, tail_ps)

        fabric = SimpleNamespace(send=send)
        return SimpleNamespace(
            engine=self.engine,
            sips=spec.sips,
            topology=spec.topology,
            graph=spec.graph,
            components=SimpleNamespace(links=servers),
            fabric=fabric,
            log=self.op_logs[sip],
            loads=None,
            send_bounds=self.bounds[sip],
            sip=sip,
        )

    def _end(self, sip: int, other: int) -> Any:
        if self.rng.random() < 0.5:
            return self.ports[other].end
        self.runs.append((other, self._runs(sip, other)))
        return self.runs[-1][1]

    def _begin_some(self, count: int) -> None:
        for _ in range(count):
            self._begin()

    def _begin(self) -> None:
        """Begin a transfer of a few packets, until the budget is used up."""
        rng = self.rng
        if not self.budget:
            return
        self.budget -= 1
        source, target = rng.sample(range(self.sips), 2)
        sizes = [rng.choice(SIZES) for _ in range(rng.choice((1, 1, 2, 5)))]
        transfer = FabricTransfer(
            kind=Kind.WRITE,
            source_sip=source,
            source_node=0,
            sip=target,
            node=0,
            address=rng.randrange(1 << 20),
            tag=self.budget,
            total=sum(sizes),
            flow=rng.choice((None, (source, target, self.budget))),
            rows=rng.choice((None, StridedBlock(8, 16, 4, 128))),
            element=rng.randrange(4),
            call=rng.choice(("", "all_reduce #1", "\u00e9")),
            payload=bytes(sum(sizes)),
        )
        begin, head_ps = 0, self.engine.now_ps
        for number, size in enumerate(sizes, 1):
            head_ps += rng.randint(0, 3) * UNIT_PS
            packet = Packet(transfer, begin, size, number == len(sizes))
            packet.entrance_ps = head_ps
            self.bounds[source].departed(target, head_ps)
            tail_ps = head_ps + rng.randint(0, 3) * UNIT_PS
            self.engine.at(head_ps, self.ports[source].accept, packet, tail_ps)
            begin += size


def systems(sips: int, fabric: str, topology: str) -> ChipSpec:
    """SIPs that are connected in one way."""
    return chip_spec(
        small(
            system__sips__count=sips, system__sips__fabric=fabric, system__sips__topology=topology
        ),
        data=False,
    )


def main(count: int, sips: int, fabric: str, topology: str) -> None:
    spec = systems(sips, fabric, topology)
    for seed in range(count):
        system = RandomCrossings(spec, seed)
        log = system.run()
        print(sum(ports.received for ports in system.ports), log)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
