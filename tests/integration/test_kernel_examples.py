"""Every kernel of `examples/kernels` is right, and reaches the share of its roofline that
docs/kernels.md states.
"""

import re
from collections.abc import Callable

import pytest

from examples.kernels import gemv, matmul
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
