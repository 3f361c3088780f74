"""The tiles in the scheduler's part of TCM, in a product of two steps that is computed by hand."""

from pathlib import Path
from typing import Any

import pytest

from kernbench.explain.records import open_run
from kernbench.explain.trace.tile_buffers import tile_levels
from runtime.core.run_tables import OPS
from runtime.model.addresses import AddressMap
from runtime.model.allocation import tile_buffer_offset
from tests.support.run_tables import Row, op, tables, write_run

TILE, PART = 4096, 2048
"""A tile of an operand, of which each load brings a part."""


@pytest.fixture(name="levels")
def _levels(tmp_path: Path) -> Any:
    """The levels of operations on PE 3 of cube 2, given addresses in the buffers."""
    topology = open_run(write_run(tmp_path / "empty", [tables()], 0)).topology
    base = AddressMap(topology).pe_tcm_addr(0, 2, 3, tile_buffer_offset(topology))

    def levels(rows: list[Row]) -> list[tuple[int, int, list[int], list[int]]]:
        placed = [
            {name: value + base if "address" in name else value for name, value in row.items()}
            | {"cube": 2, "pe": 3}
            for row in rows
        ]
        # Loads to the scratch below the buffers, and a PE without tiles.
        placed.append(op("pe_dma", "load", 0, 99, address=base - TILE, nbytes=TILE, cube=2, pe=3))
        placed.append(op("pe_math", "add", 0, 99, cube=0, pe=0))
        run = write_run(tmp_path / f"run{len(rows)}", [tables(placed)], 1000)
        found = tile_levels(open_run(run).table(OPS, 0), topology, 0)
        return [(cube, pe, times.tolist(), values.tolist()) for cube, pe, times, values in found]

    return levels


def load(start_ps: int, end_ps: int, address: int) -> Row:
    return op("pe_dma", "load", start_ps, end_ps, address=address, nbytes=PART)


def fetch(start_ps: int, end_ps: int, read_address: int) -> Row:
    return op("pe_fetch_store", "fetch", start_ps, end_ps, read_address=read_address, nbytes=TILE)


def test_a_tile_is_held_from_its_first_load_to_its_last_fetch(levels: Any):
    rows = [
        load(10, 60, 0),
        load(20, 70, PART),
        fetch(80, 90, 0),
        fetch(95, 99, 0),
        # The next tile in the same buffer.
        load(100, 140, 0),
        load(100, 150, PART),
        fetch(160, 170, 0),
    ]
    assert levels(rows) == [(2, 3, [10, 20, 99, 100, 170], [PART, TILE, 0, TILE, 0])]


def test_a_result_is_held_until_its_last_part_is_in_memory(levels: Any):
    rows = [
        op("pe_fetch_store", "store", 200, 210, address=TILE, nbytes=PART),
        op("pe_dma", "store", 210, 250, read_address=TILE, nbytes=512),
        op("pe_dma", "store", 210, 240, read_address=TILE + 512, nbytes=512),
        op("pe_dma", "store", 205, 270, read_address=TILE + 1024, nbytes=1024),
    ]
    assert levels(rows) == [(2, 3, [200, 270], [PART, 0])]


def test_a_tile_that_nothing_reads_is_held_until_it_is_written(levels: Any):
    assert levels([load(10, 60, 0)]) == [(2, 3, [10, 60], [PART, 0])]
    assert levels([load(10, 60, 0), load(70, 90, 0)]) == [
        (2, 3, [10, 60, 70, 90], [PART, 0, PART, 0])
    ]


def test_a_run_without_products_has_no_tiles(levels: Any):
    assert levels([]) == []
