"""Counts of operations from the records of a log."""

from collections.abc import Iterable, Iterator

import pytest

from kernbench.studies.milestone_gqa_llama70b.op_log import OpLogCounts, OpLogSummary
from runtime.core.trace import Operand, OpRecord
from runtime.model.tiles import TilePlan, TileSize

TILE, ITEM = TileSize(32, 64, 32), 4
ACCUMULATOR, REGISTER, RESULT = 1 << 27, 1 << 28, 1 << 20


def product(m: int, n: int, address: int, pe: int = 0) -> Iterator[OpRecord]:
    """The records of a product with the result (m, n) in TCM: steps, and stores of its tiles."""
    for tile in TilePlan(m, 128, n, TILE):
        shape = (tile.size.m, tile.size.n)
        yield OpRecord("pe_gemm", "gemm", 0, 1, pe=pe, address=ACCUMULATOR, shape=shape)
        if tile.last:
            target = address + ITEM * (tile.rows[0] * n + tile.columns[0])
            yield stored(ACCUMULATOR, target, shape, pe)


def stored(source: int, target: int, shape: tuple[int, int], pe: int = 0) -> OpRecord:
    inputs = (Operand(source, shape, "f32"),)
    return OpRecord("pe_fetch_store", "store", 0, 1, pe=pe, address=target, inputs=inputs)


def read(address: int, pe: int = 0) -> OpRecord:
    inputs = (Operand(address, (1, 1), "f32"), 2.0)
    return OpRecord("pe_math", "mul", 0, 1, pe=pe, address=REGISTER, inputs=inputs)


def summary(records: Iterable[OpRecord]) -> OpLogSummary:
    """The summary of the records, added in two parts."""
    counts, whole = OpLogCounts(), list(records)
    counts.add(0, whole[: len(whole) // 2])
    counts.add(0, whole[len(whole) // 2 :])
    return counts.summary()


@pytest.mark.parametrize(("m", "n"), [(16, 16), (16, 64), (33, 32), (128, 200), (1, 64), (65, 33)])
def test_all_tiles_of_a_result_are_one_product(m: int, n: int):
    assert summary([*product(m, n, RESULT), read(RESULT)]).gemm_count == 1
    other = RESULT + ITEM * m * n
    # The same result again, and one that begins where it ends.
    more = [*product(m, n, RESULT), *product(m, n, RESULT), *product(m, n, other)]
    assert summary([*more, read(RESULT), read(other)]).gemm_count == 3


def test_what_the_vector_engine_stores_is_no_product():
    assert summary([stored(REGISTER, RESULT, (64, 128)), read(RESULT)]).gemm_count == 0


def test_products_of_several_pes_lie_at_the_same_addresses():
    records = [*product(64, 64, RESULT, pe=0), *product(64, 64, RESULT, pe=1), read(RESULT)]
    assert summary(records).gemm_count == 1
    assert summary([*records, read(RESULT, pe=1)]).gemm_count == 2


def test_the_summary_counts_requests_of_kernels_and_messages_between_pes():
    names = ["load", "load", "gather", "store", "ipcq_send", "ipcq_send", "ipcq_recv"]
    records = [OpRecord("pe_dma", name, 0, 1) for name in names]
    records += [OpRecord("host", "MemoryWriteMsg", 0, 1), OpRecord("pe_ipcq", "arrival", 0, 1)]
    assert summary([*records, *product(16, 16, RESULT), read(RESULT)]) == OpLogSummary(
        gemm_count=1, ipcq_send_count=2, ipcq_recv_count=1, dma_read_count=3, dma_write_count=1
    )
