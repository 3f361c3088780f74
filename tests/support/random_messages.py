"""Messages between LPs, valid and mutated, and what becomes of them.

As a program it prints the outcome for a number of seeds, one line for each.
"""

import sys
from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from runtime.core.errors import ProtocolError
from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import Message
from runtime.wire.packet_blocks import pack
from runtime.wire.packets import (
    CARRIERS,
    PacketKind,
    PacketRun,
    TransferFlow,
    TransferHeader,
    TransferRows,
)
from sip_node.chip.chip import chip_spec
from sip_node.chip.ports.packet_rules import PacketRules
from sip_node.chip.ports.packet_runs import ArrivingTransfers
from tests.support.packets import transfer_header
from tests.support.random_crossings import RandomCrossings
from tests.support.topologies import small

SPEC = chip_spec(small(system__sips__count=2), data=False)
GRAPH, BASE = SPEC.graph, SPEC.addresses.pe_hbm_addr(1, 0, 0, 0)
WORD = 8


class Traffic:
    """Messages from SIP 0 to SIP 1, most of which are as they should be."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.number = self.seq = 0
        # Number of a transfer that goes on -> its total, and the bytes to come.
        self.open: dict[int, tuple[int, int]] = {}

    def messages(self) -> list[Message]:
        return [self.mutated(self.message()) for _ in range(12)]

    def message(self) -> Message:
        rng = self.rng
        begins = not self.open or rng.random() < 0.6
        number = self.number if begins else rng.choice(sorted(self.open))
        kind = rng.choice(sorted(PacketKind))
        total = rng.choice((0, 64, 256)) if kind in CARRIERS else 64
        total, left = (total or 64, total or 64) if begins else self.open[number]
        self.number += begins
        packets = rng.choice((1, 2, 4)) if kind in CARRIERS or not begins else 1
        size = left // packets
        ends = kind not in CARRIERS or rng.random() < 0.6 or size < 8
        sizes = [size] * packets if ends else [size // 2] * packets
        self.open.pop(number, None)
        if not ends:
            self.open[number] = total, left - sum(sizes)
        seqs = tuple(range(self.seq, self.seq + packets))
        self.seq += packets
        begun = total - left
        run = PacketRun(
            number=number,
            header=self.header(kind, total) if begins else None,
            ends=ends,
            heads_ps=tuple(1007 + 10 * seq for seq in seqs),
            tails_ps=tuple(rng.randrange(9) for _ in seqs),
            seqs=seqs,
            begins=tuple(begun + sum(sizes[:index]) for index in range(packets)),
            sizes=tuple(sizes),
        )
        payload = bytes(total) if ends and kind in CARRIERS and rng.random() < 0.5 else b""
        return Message(run.heads_ps[0], 0, 1, seqs[0], pack(run), payload)

    def header(self, kind: PacketKind, total: int) -> TransferHeader:
        rng = self.rng
        access = kind in (PacketKind.WRITE, PacketKind.READ, PacketKind.IPCQ_DATA)
        return transfer_header(
            kind=kind,
            source_node=GRAPH.pe(0, 0),
            node=GRAPH.hbm(0, 0) if access else GRAPH.pe(0, 0),
            address=BASE + rng.choice((0, 64, SPEC.topology.hbm_slice_bytes - 256)),
            total=total,
            flow=rng.choice((None, TransferFlow(0, 1, 3))),
            rows=rng.choice((None, TransferRows(16, 32, 0, 0), TransferRows(8, 8, 2, 64))),
            element=rng.randrange(10),
            call=rng.choice(("", "all_reduce #1", "\u00e9" * 5)),
        )

    def mutated(self, message: Message) -> Message:
        rng, body = self.rng, bytearray(message.body)
        change = rng.random()
        at = rng.randrange(len(body))
        if change < 0.15:
            body[at] = rng.randrange(256)
        elif change < 0.3:
            word = at // WORD * WORD
            value = rng.choice((-1, 0, 1, 2, 1 << 20, 1 << 51, NEVER_PS, (1 << 63) - 1))
            body[word : word + WORD] = value.to_bytes(WORD, "little", signed=True)
        elif change < 0.35:
            del body[at:]
        elif change < 0.4:
            body += bytes(rng.choice((1, 8, 40)))
        elif change < 0.45:
            return replace(message, payload=bytes(rng.choice((1, 64))))
        return replace(message, body=bytes(body))


FAULT_OF = PacketRules(SPEC).fault


def outcome(seed: int, fault_of: Callable[[Message], str] = FAULT_OF) -> list[object]:
    """Faults of the messages, errors of those that continue no transfer, and then the arrivals."""
    world, arriving = RandomCrossings(SPEC, seed), ArrivingTransfers({0: 0, 1: 1})
    for message in Traffic(seed).messages():
        fault = fault_of(message)
        world.log.append((fault,))
        if not fault:
            try:
                arriving.receive(message, world.ports[1])
            except ProtocolError as error:
                world.log.append((str(error),))
    return list(world.run())


if __name__ == "__main__":
    for each in range(int(sys.argv[1])):
        print(outcome(each))
