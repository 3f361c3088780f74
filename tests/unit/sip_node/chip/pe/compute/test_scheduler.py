"""Products in the pipeline of a PE: the addresses and the order of their tiles, and the promise."""

from collections import defaultdict
from itertools import pairwise
from typing import ClassVar

import pytest

from runtime.core.dtypes import float16, int8
from runtime.core.trace import OpRecord
from runtime.language.gemm import Gemm
from runtime.language.value import Value
from runtime.model.addresses import AddressMap, PhysAddr
from runtime.model.allocation import tile_buffer_offset
from sip_node.chip.completion import Completion
from sip_node.chip.pe.compute.operand_tiles import Blocks
from sip_node.chip.pe.compute.scheduler import PeScheduler
from tests.support.products import Measured, Product, measure, operands

EVERYTHING = Product(64, 130, 40, acc=True, bias=float16, activation="relu")
"""A product that passes every stage, and no side of which is a multiple of the tile's."""


def resources(measured: Measured, addresses: list[int]) -> set[str]:
    known = AddressMap(measured.topology)
    return {PhysAddr.decode(address, known).resource for address in addresses}


def test_operands_and_sums_are_in_the_register_file() -> None:
    measured = measure(EVERYTHING)
    fetched = [record.address for record in measured.of("pe_fetch_store", "fetch")]
    engine = [
        each.address
        for record in (*measured.of("pe_gemm"), *measured.of("pe_math"))
        for each in operands(record)
    ]
    stored = [
        each.address
        for record in measured.of("pe_fetch_store", "store")
        for each in operands(record)
    ]
    assert resources(measured, fetched + engine + stored) == {"regfile"}


def test_tiles_from_and_to_memory_pass_the_buffers_of_the_scheduler() -> None:
    measured = measure(EVERYTHING)
    scratch = tile_buffer_offset(measured.topology)
    known = AddressMap(measured.topology)
    loads = [
        record for record in measured.of("pe_dma", "load") if len(operands(record)[0].shape) == 2
    ]
    buffers = [load.address for load in loads if known_offset(known, load.address) >= scratch]
    # As many buffers for A as for B. The initial sum and the bias are loaded, too, but to scratch.
    count = measured.topology.pe.scheduler.tile_buffers
    assert len(set(buffers)) == 2 * count
    assert len(buffers) == 2 * EVERYTHING.plan(measured.topology).tiles
    results = {record.address for record in measured.of("pe_fetch_store", "store")}
    # Fewer output tiles than buffers use one each, in turn.
    assert len(results) == min(count, EVERYTHING.plan(measured.topology).output_tiles)
    assert all(known_offset(known, each) >= scratch for each in results)


def known_offset(known: AddressMap, address: int) -> int:
    where = PhysAddr.decode(address, known)
    assert where.resource == "tcm"
    return where.offset


@pytest.mark.parametrize(
    "product",
    [
        EVERYTHING,
        Product(96, 32, 96, bias=float16, activation="gelu"),
        Product(64, 64, 64, dtype=int8, stage_a=True),
        Product(64, 200, 64, stage_result=True, acc=True),
    ],
    ids=["everything", "shallow", "i8", "deep"],
)
@pytest.mark.parametrize("lanes", [128, 8])
def test_nothing_is_overwritten_before_it_has_been_used(product: Product, lanes: int) -> None:
    measured = measure(product, product, data=True, pe__math__lanes=lanes)
    records = [
        record for record in measured.records if record.engine.startswith("pe_") and record.inputs
    ]
    writes: dict[int, list[OpRecord]] = defaultdict(list)
    for record in records:
        writes[record.address].append(record)
    used = 0
    for record in records:
        for source in operands(record):
            before = [
                write
                for write in writes[source.address]
                if write.end_ps <= record.start_ps and write is not record
            ]
            if not before:
                continue
            used += 1
            last_ps = max(write.end_ps for write in before)
            between = [
                write
                for write in writes[source.address]
                if write is not record and last_ps < write.end_ps and write.start_ps < record.end_ps
            ]
            assert not between, f"{record} reads what {between[0]} overwrites"
    # At least the operands of every step and every sum that is stored.
    assert used >= 2 * len(measured.of("pe_gemm")) + len(measured.of("pe_fetch_store", "store"))


def test_what_is_fetched_is_what_was_loaded() -> None:
    measured = measure(Product(64, 128, 64), data=True)
    held: dict[int, int] = {}
    for record in sorted(measured.records, key=lambda each: each.end_ps):
        if record.engine == "pe_dma":
            held[record.address] = record.checksum
        if record.name == "fetch":
            assert record.checksum == held[operands(record)[0].address] != 0


def test_steps_pass_every_engine_in_their_order() -> None:
    measured = measure(EVERYTHING, EVERYTHING)
    for engine, name in (
        ("pe_fetch_store", "fetch"),
        ("pe_gemm", ""),
        ("pe_math", ""),
        ("pe_fetch_store", "store"),
    ):
        records = measured.of(engine, name)
        assert records
        assert all(former.end_ps <= later.start_ps for former, later in pairwise(records))


def test_the_steps_of_a_product_come_before_those_of_products_submitted_later() -> None:
    # More steps than there are buffers: some are issued after the submission of the other product.
    first, second = Product(128, 256, 32).staged(), Product(16, 16, 16).staged()
    measured = measure(first, second)
    steps = first.plan(measured.topology).tiles
    assert steps > measured.topology.pe.scheduler.tile_buffers
    shapes = [record.shape for record in measured.of("pe_gemm")]
    assert shapes.index((second.m, second.n)) == steps == len(shapes) - 1


def test_the_counters_are_those_of_the_records() -> None:
    measured = measure(EVERYTHING)
    for engine, name, counter in (
        ("pe_fetch_store", "fetch", "fetch"),
        ("pe_fetch_store", "store", "store"),
        ("pe_math", "", "math"),
        ("pe_gemm", "", "gemm"),
    ):
        records, count = (
            measured.of(engine, name),
            f"{counter}_{'tiles' if counter == 'gemm' else 'records'}",
        )
        assert measured.counters[count] == len(records)
        assert measured.counters[f"{counter}_busy_ps"] == sum(
            record.end_ps - record.start_ps for record in records
        )


def test_more_buffers_hide_a_memory_that_is_far() -> None:
    product = Product(64, 512, 64)
    two, eight = (
        measure(
            product, xbar__overhead_ns=40.0, pe__dma__channels=16, pe__scheduler__tile_buffers=count
        )
        for count in (2, 8)
    )
    assert eight.kernel_ps < 0.7 * two.kernel_ps


class Watched(PeScheduler):
    """A scheduler that reports its promise every nanosecond."""

    promises: ClassVar[list[list[tuple[int, int]]]] = []
    ends: ClassVar[list[int]] = []

    def submit(self, gemm: Gemm, target: Value | None, blocks: Blocks) -> Completion[None]:
        done, reported = super().submit(gemm, target, blocks), list[tuple[int, int]]()
        self.promises.append(reported)

        def report() -> None:
            if not done.done:
                reported.append((self._engine.now_ps, self.earliest_end_ps(done)))
                self._engine.at(self._engine.now_ps + 1_000, report)

        report()
        done.then(lambda _done: self.ends.append(self._engine.now_ps))
        return done


@pytest.mark.parametrize(
    "product",
    [EVERYTHING, Product(64, 128, 64).staged(), Product(128, 256, 128)],
    ids=["streamed", "staged", "long"],
)
def test_a_product_does_not_end_before_its_promise_which_never_falls(product: Product) -> None:
    Watched.promises, Watched.ends = [], []
    measured = measure(product, product, impl={"pe_scheduler": f"{__name__}:Watched"})
    assert len(Watched.promises) == len(Watched.ends) == 2
    for reported, end_ps in zip(Watched.promises, Watched.ends, strict=True):
        bounds = [bound for _, bound in reported]
        assert bounds
        assert bounds == sorted(bounds)
        assert bounds[-1] <= end_ps
        assert all(bound >= now for now, bound in reported)
    # The second product is behind the steps of both.
    now_ps, bound_ps = Watched.promises[1][0]
    steps = 2 * product.plan(measured.topology).tiles
    begun = sum(record.start_ps < now_ps for record in measured.of("pe_gemm"))
    assert bound_ps - now_ps >= (steps - begun) * 16_000 > 0


def test_a_product_that_waits_for_its_memory_promises_most_of_its_time() -> None:
    Watched.promises, Watched.ends = [], []
    measure(Product(128, 256, 128), impl={"pe_scheduler": f"{__name__}:Watched"})
    now_ps, bound_ps = Watched.promises[0][0]
    # Its steps in the engine take a third.
    assert bound_ps - now_ps > 0.6 * (Watched.ends[0] - now_ps)


def test_a_resource_that_is_reserved_at_the_end_breaks_a_law() -> None:
    chip = measure(Product(32, 64, 32)).world.node.chips[0]
    pe = chip.pes[0]
    assert chip.broken_law() == ""
    index = pe.registers.sets.take()
    assert chip.broken_law() == "sip 0 cube 0 pe 0: at the end registers or tile buffers are in use"
    pe.registers.sets.free(index)
    pe.gemm.stall_dma_ps += 1 << 60
    assert "pe_gemm: busy" in chip.broken_law()
