"""The transaction queue in C against the reference: the same service of random accesses."""

from random import Random
from typing import Any

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.chip.memory.access import Access
from sip_node.chip.memory.hbm import PseudoChannels
from sip_node.chip.memory.storage import SramPorts
from sip_node.chip.memory.transaction_queue import (
    MANY_MESSAGES,
    ReferenceTransactionQueue,
    queue_of,
)
from sip_node.chip.strided_block import StridedBlock
from sip_node.pdes.engine import Engine, ReferenceEngine
from tests.support.topologies import variant

if not IS_COMPILED:
    pytest.skip("the compiled core does not run", allow_module_level=True)

from sip_node.compiled.memory_queue import AccessQueue

MEMORIES = 60


class Bench:
    """A queue with random accesses; `log` is what it served, and in which order."""

    def __init__(self, core: tuple[Any, Any], seed: int) -> None:
        rng = Random(seed)
        engine, queue = core
        self.engine, self.log = engine(), list[tuple[int, ...]]()
        self.queue = queue(self.engine, memory_of(rng))
        for number in range(rng.choice([20, 60, 3 * MANY_MESSAGES])):
            self.engine.at(rng.randrange(0, 600_000, 500), self.submit, number, rng.random())
        for _ in range(rng.randrange(3)):
            held_ps = rng.randrange(500_000)
            self.engine.at(held_ps, self.queue.hold)
            self.engine.at(held_ps + rng.randrange(90_000), self.queue.resume)

    def submit(self, number: int, chance: float) -> None:
        rng, now_ps = Random(chance), self.engine.now_ps
        rows = StridedBlock(rng.choice([64, 200]), rng.choice([256, 512, 2048, 2050]))
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

    def run(self) -> tuple[list[tuple[int, ...]], int]:
        events = self.engine.run_before(1 << 60)
        return self.log, events


def memory_of(rng: Random) -> PseudoChannels | SramPorts:
    """Channels as twins are built on; with the engine of the reference they serve as well."""
    if rng.random() < 0.2:
        return SramPorts("sram", 128)
    hardware = variant(
        hbm__num_pcs=rng.choice([1, 4, 8]), cube__hbm_ctrl__switch_penalty_ns=rng.choice([0.0, 7.0])
    )
    return PseudoChannels("hbm", hardware)


def test_random_accesses_are_served_alike() -> None:
    served = 0
    for seed in range(MEMORIES):
        compiled = Bench((Engine, AccessQueue), seed)
        reference = Bench((ReferenceEngine, ReferenceTransactionQueue), seed)
        assert compiled.run() == reference.run(), f"memory {seed}"
        served += len(compiled.log)
    assert served > 50 * MEMORIES


class HalfTheShares(PseudoChannels):
    """A class derived from the channels, whose methods decide."""

    def shares(self, offset: int, nbytes: int) -> list[int]:
        return [share // 2 for share in super().shares(offset, nbytes)]


def test_methods_of_a_derived_class_are_called() -> None:
    channels, ends = HalfTheShares("hbm", variant()), list[int]()
    queue = AccessQueue(Engine(), channels)
    queue.submit(Access((0, 0, 0), 0, 4096, 0, 0, False, lambda *span: ends.append(span[2])))
    assert ends == [channels.channels[0].serialisation_ps(4096 // len(channels.channels) // 2)]


def test_an_access_to_no_bytes_is_refused() -> None:
    queue = AccessQueue(Engine(), PseudoChannels("hbm", variant()))
    with pytest.raises(AssertionError, match="an access to no bytes"):
        queue.submit(Access((0, 0, 0), 0, 0, 0, 0, False, lambda *_: None))


def test_more_channels_than_bits_are_served_by_the_reference() -> None:
    assert type(queue_of(Engine(), PseudoChannels("hbm", variant(hbm__num_pcs=64)))) is AccessQueue
    many = PseudoChannels("hbm", variant(hbm__num_pcs=65))
    assert type(queue_of(Engine(), many)) is ReferenceTransactionQueue
    with pytest.raises(ValueError, match="at most 64 channels, not 65"):
        AccessQueue(Engine(), many)
