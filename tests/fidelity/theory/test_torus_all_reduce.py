"""Bytes and times of the all-reduce over two dimensions, by hand."""

from fractions import Fraction

import pytest

from kernbench.oracle.theory.alpha_beta import RingQueue, all_reduce_bytes
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.fidelity.theory.torus_all_reduce import (
    TorusAllReduceTimes,
    busiest_link_bytes,
)
from tests.support.topologies import default_text

ONE_CUBE = TopologyFile.of(default_text()).with_values({"sip.cube_mesh": {"w": 1, "h": 1}})
N = 144


@pytest.mark.parametrize(
    ("columns", "rows", "wraps", "expected"),
    [
        # Half of n: n/2 there and back between two ranks; of the other half, half of that.
        (2, 2, True, Fraction(3, 4)),
        (2, 2, False, Fraction(3, 4)),
        # 4/3 of n/2, and a third of that; both directions of the links of a torus share it.
        (3, 3, False, Fraction(8, 9)),
        (3, 3, True, Fraction(4, 9)),
        # Rows of four: 3/2 of n/2, and half of that. Columns of two: n/2, and a quarter of that.
        (4, 2, False, Fraction(9, 8)),
        (4, 2, True, Fraction(5, 8)),
    ],
)
def test_the_busiest_link_carries_half_of_the_shards_first_and_what_the_other_half_leaves(
    columns: int, rows: int, wraps: bool, expected: Fraction
) -> None:
    assert busiest_link_bytes(columns, rows, N, wraps=wraps) == expected * N


@pytest.mark.parametrize(("side", "fewer"), [(2, 2), (3, 4), (4, 4)])
def test_a_square_torus_divides_the_bytes_of_a_ring_by_its_links(side: int, fewer: int) -> None:
    on_ring = all_reduce_bytes(side * side, N)
    assert busiest_link_bytes(side, side, N, wraps=True) == on_ring / fewer


def test_the_form_has_the_steps_of_both_dimensions_and_the_busier_of_links_and_slices() -> None:
    times = TorusAllReduceTimes(ONE_CUBE, RingQueue())
    # 3/4 of 1 MiB at 128 GB/s, and 4 MiB on one slice of 204.8 GB/s; alpha is 74.54 ns.
    link_ps, slice_ps = 0.75 * (1 << 20) / 128 * 1000, 4 * (1 << 20) / 204.8 * 1000
    assert times.link_ps(2, 2, 1 << 20, wraps=True) == link_ps
    assert times.alpha_beta_ps(2, 2, 1 << 20, pes=8, wraps=True) == 4 * 74_540 + link_ps
    assert times.alpha_beta_ps(2, 2, 1 << 20, pes=1, wraps=True) == 4 * 74_540 + slice_ps
