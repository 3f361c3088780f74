"""The measurement of one product: stages in an op log, and the tolerance of a result."""

import numpy as np
import pytest

from kernbench.studies.milestone_1h_gemm.rows import StageRecords
from kernbench.studies.milestone_1h_gemm.study import (
    StageLog,
    busy_ps,
    operands,
    rounding_error,
)
from kernbench.studies.milestone_1h_gemm.theory import ProductShape
from runtime.core.trace import OpRecord


def record(engine: str, name: str, start_ps: int, end_ps: int) -> OpRecord:
    return OpRecord(engine, name, start_ps, end_ps)


LOG = [
    record("host", "MemoryWriteMsg", 0, 1000),
    record("pe_dma", "load", 1000, 1100),
    record("pe_dma", "load", 1110, 1150),
    record("pe_dma", "load", 1200, 1260),
    record("pe_dma", "load", 1230, 1300),
    record("pe_fetch_store", "fetch", 1260, 1270),
    record("pe_gemm", "gemm", 1270, 1286),
    record("pe_fetch_store", "store", 1286, 1290),
    record("pe_dma", "store", 1290, 1310),
]


def test_the_records_of_each_stage_are_counted_and_the_others_left_out():
    assert StageLog.of(LOG).counts == StageRecords(dma_in=4, fetch=1, gemm=1, store=1, dma_out=1)


def test_a_stage_is_busy_while_at_least_one_operation_is_in_flight():
    busy = StageLog.of(LOG).busy
    assert (busy.dma_in_ps, busy.fetch_ps, busy.gemm_ps, busy.dma_out_ps) == (
        100 + 40 + 100,
        10,
        16,
        20,
    )
    inside = [
        record("pe_dma", "load", 0, 100),
        record("pe_dma", "load", 10, 20),
        record("pe_dma", "load", 100, 130),
    ]
    assert busy_ps(reversed(inside)) == 130


@pytest.mark.parametrize(("loads", "load_ps"), [(0, 0), (1, 100), (2, 150)])
def test_the_loads_of_the_kernel_are_the_first_ones(loads: int, load_ps: int):
    assert StageLog.of(reversed(LOG)).load_ps(loads) == load_ps


def test_operands_are_the_same_in_every_process():
    first, again = operands(ProductShape(8, 16, 4)), operands(ProductShape(8, 16, 4))
    assert [each.shape for each in first] == [(8, 16), (16, 4)]
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


def test_the_nearest_f16_is_right_and_two_units_beside_it_are_not():
    a, b = operands(ProductShape(40, 100, 30))
    nearest = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16)
    assert rounding_error(a, b, nearest, 64) <= 1
    up = np.float16(np.inf)
    beside = nearest.copy()
    beside[7, 5] = np.nextafter(np.nextafter(nearest[7, 5], up), up)
    assert rounding_error(a, b, beside, 64) > 1
