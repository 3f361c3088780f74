"""Counts of operations from the records of a log."""

from collections.abc import Iterator

import pytest

from kernbench.studies.milestone_gqa_llama70b.op_log import OpLogSummary, product_count
from runtime.core.trace import OpRecord
from runtime.model.tiles import TilePlan, TileSize

TILE, ITEM = TileSize(32, 64, 32), 4


def stores(m: int, n: int, address: int, pe: int = 0) -> Iterator[OpRecord]:
    """The records of the tiles of a result (m, n) in TCM, as the GEMM engine stores them."""
    for tile in TilePlan(m, 64, n, TILE):
        rows, columns = tile.size.m, tile.size.n
        yield OpRecord(
            "pe_fetch_store",
            "store",
            0,
            1,
            cube=0,
            pe=pe,
            address=address + ITEM * (tile.rows[0] * n + tile.columns[0]),
            nbytes=ITEM * rows * columns,
            shape=(rows, columns),
            dtype="f32",
            strides=() if columns == n else (n, 1),
        )


@pytest.mark.parametrize(("m", "n"), [(16, 16), (16, 64), (33, 32), (128, 200), (1, 64), (65, 33)])
def test_all_tiles_of_a_result_are_one_product(m: int, n: int):
    assert product_count(stores(m, n, 4096)) == 1
    again = [*stores(m, n, 4096), *stores(m, n, 4096), *stores(m, n, 1 << 20)]
    assert product_count(again) == 3


def test_products_are_counted_for_each_pe():
    first, second = (list(stores(64, 64, 4096, pe)) for pe in (0, 1))
    in_turn = [record for pair in zip(first, second, strict=True) for record in pair]
    assert product_count(in_turn) == 2


def test_the_summary_counts_requests_of_kernels_and_messages_between_pes():
    names = ["load", "load", "load", "store", "ipcq_send", "ipcq_send", "ipcq_recv"]
    records = [OpRecord("pe_dma", name, 0, 1) for name in names]
    records += [OpRecord("host", "MemoryWriteMsg", 0, 1), OpRecord("pe_ipcq", "arrival", 0, 1)]
    assert OpLogSummary.of([*records, *stores(16, 16, 0)]) == OpLogSummary(
        gemm_count=1, ipcq_send_count=2, ipcq_recv_count=1, dma_read_count=3, dma_write_count=1
    )
