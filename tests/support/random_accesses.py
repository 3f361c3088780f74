"""Random accesses to a memory, for the comparison of two modes.

`python -m tests.support.random_accesses FIRST COUNT` prints a line for each of `COUNT` seeds.
"""

import sys
from random import Random
from zlib import crc32

from sip_node.chip.mapping.strided_block import StridedBlock
from sip_node.chip.memory.access import Access
from sip_node.chip.memory.hbm import PseudoChannels
from sip_node.chip.memory.memory_channels import MemoryChannels
from sip_node.chip.memory.storage import SramPorts
from sip_node.chip.memory.transaction_queue import AccessQueue
from sip_node.pdes.engine import Engine
from tests.support.topologies import variant

MANY_ACCESSES = 800
"""More than the messages that a queue remembers."""


class HalfTheShares(PseudoChannels):
    """A class derived from the channels, whose methods decide."""

    def shares(self, offset: int, nbytes: int) -> list[int]:
        return [(share + 1) // 2 for share in super().shares(offset, nbytes)]


class AccessWorld:
    """A queue with random accesses; `log` is what it served, and in which order."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        self.engine, self.log = Engine(), list[tuple[int, ...]]()
        self.queue = AccessQueue(self.engine, memory_of(rng))
        for number in range(rng.choice([20, 60, MANY_ACCESSES])):
            self.engine.at(rng.randrange(0, 600_000, 500), self.submit, number, rng.random())
        for _ in range(rng.randrange(3)):
            held_ps = rng.randrange(500_000)
            self.engine.at(held_ps, self.queue.hold)
            self.engine.at(held_ps + rng.randrange(90_000), self.queue.resume)

    def submit(self, number: int, chance: float) -> None:
        rng, now_ps = Random(chance), self.engine.now_ps
        planes = rng.choice([(0, 0), (3, 5000)])
        rows = StridedBlock(rng.choice([64, 200]), rng.choice([256, 512, 2048, 2050]), *planes)
        access = Access(
            message=(0, rng.randrange(3), rng.choice([number, rng.randrange(8)])),
            offset=rng.randrange(1 << 16),
            nbytes=rng.choice([1, 64, 256, 1000, 2048, 4096]),
            arrived_ps=now_ps,
            tail_ps=now_ps + rng.choice([0, 0, 30_000]),
            writes=rng.random() < 0.4,
            begun=lambda *span: self.begun(number, chance, *span),
            rows=rng.choice([None, rows]),
            begin=rng.choice([0, 0, 100]),
        )
        self.queue.submit(access)

    def begun(self, number: int, chance: float, *span: int) -> None:
        self.log.append((number, self.engine.now_ps, *span))
        # An access that begins may submit another one, of its message or not.
        if chance < 0.1:
            self.submit(number, 10 * chance)

    def run(self) -> list[tuple[int, ...]]:
        """Accesses in the order in which the queue serves them, and then the number of events."""
        events = self.engine.run_before(1 << 60)
        return [*self.log, (events,)]


def memory_of(rng: Random) -> MemoryChannels:
    """The channels of a memory."""
    if rng.random() < 0.2:
        return SramPorts("sram", 128)
    hardware = variant(
        hbm__num_pcs=rng.choice([1, 4, 8, 64, 65, 150]),
        cube__hbm_ctrl__switch_penalty_ns=rng.choice([0.0, 7.0]),
    )
    return rng.choice([PseudoChannels, PseudoChannels, HalfTheShares])("hbm", hardware)


def main(first: int, count: int) -> None:
    """Print what some memories serve."""
    for seed in range(first, first + count):
        log = AccessWorld(seed).run()
        print(f"memory {seed}: {len(log)} accesses, {crc32(repr(log).encode()):08x}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
