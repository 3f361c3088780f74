"""Block sizes of generated kernels: all PEs, and no more than fits into TCM."""

from math import prod

import pytest

from kernbench.torch_backend.inductor.block_sizes import (
    DeviceSizes,
    KernelSizes,
    block_sizes,
    nearby_sizes,
)

DEVICE = DeviceSizes(pes=128, tcm_bytes=1 << 20)


def kernel(
    parallel: dict[str, int], reduced: dict[str, int] | None = None, *, kept: int = 1
) -> KernelSizes:
    return KernelSizes(parallel, reduced or {}, kept, values=4)


def test_a_long_vector_has_a_program_for_each_pe():
    assert block_sizes(kernel({"XBLOCK": 1 << 20}), DEVICE) == {"XBLOCK": 1 << 13}


def test_a_short_vector_has_few_programs():
    assert block_sizes(kernel({"XBLOCK": 300}), DEVICE) == {"XBLOCK": 512}


def test_rows_are_dealt_over_the_pes():
    assert block_sizes(kernel({"XBLOCK": 4096}, kept=1024), DEVICE) == {"XBLOCK": 32}


@pytest.mark.parametrize("rows", [1, 1 << 14])
def test_blocks_fit_into_half_of_tcm(rows: int):
    blocks = block_sizes(kernel({"XBLOCK": rows}, {"R0_BLOCK": 1 << 16}), DEVICE)
    assert prod(blocks.values()) * 4 * 4 <= (1 << 20) // 2


def test_a_row_that_fits_nowhere_has_the_smallest_block():
    assert block_sizes(kernel({"XBLOCK": 8}, kept=1 << 20), DEVICE) == {"XBLOCK": 1}


def test_the_blocks_to_time_begin_with_the_chosen_ones():
    sizes = kernel({"XBLOCK": 1 << 16, "YBLOCK": 64})
    first, *others = nearby_sizes(sizes, DEVICE, 4)
    assert first == block_sizes(sizes, DEVICE)
    assert len(others) == 3
    assert first not in others


def test_a_kernel_without_blocks_has_one_choice():
    assert nearby_sizes(kernel({}), DEVICE, 4) == [{}]
