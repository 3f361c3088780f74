"""Bytes that a product moves, by where its operands and its result are."""

import pytest

from kernbench.oracle.checks.engines.gemm_runs import GemmCase
from kernbench.oracle.theory.engines.gemm import GemmShape
from runtime.core.dtypes import float16, float32

TILE = GemmShape(32, 64, 32)


def test_staged_operands_are_read_once_and_streamed_ones_for_every_tile() -> None:
    case = GemmCase(GemmShape(64, 64, 96), float16, float32, "load_ref")
    # A once, B once for each of two rows of tiles; 64 x 96 results of 4 bytes.
    assert case.read_bytes(TILE) == 64 * 64 * 2 + 2 * 64 * 96 * 2
    assert case.written_bytes == 64 * 96 * 4
    assert GemmCase(GemmShape(64, 64, 96), to_memory=False).written_bytes == 0


@pytest.mark.parametrize("staging", ["ref_ref", "load_ref", "load_load"])
def test_what_is_read_is_at_least_each_operand_once(staging: str) -> None:
    case = GemmCase(GemmShape(40, 70, 33), staging=staging)
    assert case.read_bytes(TILE) >= (40 * 70 + 70 * 33) * 2
