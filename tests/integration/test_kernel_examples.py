"""Every kernel of `examples/kernels` is right, and reaches the share of its roofline that
docs/kernels.md states.
"""

import re
from collections.abc import Callable

import pytest

from examples.kernels import (
    flash_attention,
    gemv,
    layer_norm,
    matmul,
    paged_attention,
    softmax,
    vector_add,
)
from tests.support.world import simulate

pytestmark = pytest.mark.slow


def share(run: Callable[[], None], printed: pytest.CaptureFixture[str]) -> float:
    """The share of the roofline, in percent, that a run on one SIP prints."""
    simulate(lambda rank: run(), 1)
    line = re.fullmatch(
        r"rank 0: .*, equal to float64, [\d,.]+ ns, bound [\d,.]+ ns by the [\w ]+: ([\d.]+)%\n",
        printed.readouterr().out,
    )
    assert line is not None
    return float(line[1])


def test_a_matrix_times_a_vector_uses_the_bandwidth_of_the_hbm(capsys: pytest.CaptureFixture[str]):
    assert share(gemv.run, capsys) > 98
    assert share(lambda: gemv.run(cubes=2, pes=2, rows=256), capsys) > 90


def test_a_product_in_blocks_uses_the_gemm_engine(capsys: pytest.CaptureFixture[str]):
    assert share(matmul.run, capsys) > 95
    # The first panels of a part of 128 x 256 elements take a larger share of the time.
    assert share(lambda: matmul.run(cubes=4, pes=2, size=512), capsys) > 75


def test_a_vector_sum_uses_the_bandwidth_of_the_hbm(capsys: pytest.CaptureFixture[str]):
    assert share(vector_add.run, capsys) > 95
    # Less than the buffers, and one block more.
    for blocks in (1, vector_add.BUFFERS + 1):
        share(lambda blocks=blocks: vector_add.run(pes=2, count=blocks * 16384), capsys)


@pytest.mark.parametrize("kernel", [layer_norm, softmax], ids=lambda each: each.__name__)
def test_a_normalisation_uses_the_vector_engine(kernel, capsys: pytest.CaptureFixture[str]):
    assert share(kernel.run, capsys) > 90
    share(lambda: kernel.run(pes=2, rows=kernel.BLOCK, columns=256), capsys)


def test_flash_attention_keeps_the_vector_engine_busy(capsys: pytest.CaptureFixture[str]):
    assert share(flash_attention.run, capsys) > 89
    # Blocks on the diagonal are computed as a whole, and there are few others.
    assert share(lambda: flash_attention.run(causal=True), capsys) > 83


def test_a_decode_over_pages_uses_the_bandwidth_of_the_hbm(capsys: pytest.CaptureFixture[str]):
    assert share(paged_attention.run, capsys) > 96
    # Fewer keys than a block of scores has.
    share(lambda: paged_attention.run(users=2, pages=7), capsys)
