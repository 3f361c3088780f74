"""The form of halving-doubling against sums written out by hand."""

from fractions import Fraction

import pytest

from kernbench.oracle.theory.collectives.overlapped_blocks import HalvingDoublingForm
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.support.topologies import default_text

ONE_CUBE = TopologyFile.of(default_text()).with_values({"sip.cube_mesh": {"w": 1, "h": 1}})
# A message without bytes to the next SIP (docs/internals/rules.md), and each further SIP on its
# route: two UCIe ports, an IO NoC, 20 mm of wire.
ALPHA_NS, HOP_NS = 74.54, 2 * 8 + 2 + 0.2


def form() -> HalvingDoublingForm:
    return HalvingDoublingForm(ONE_CUBE, 2048)


def test_latencies_are_those_of_a_gray_code_along_the_ring() -> None:
    # Along 0 1 3 2 6 7 5 4, the partners of a rank are 1, 3 and 1, or 1, 1 and 3 links apart.
    near, far = ALPHA_NS, ALPHA_NS + 2 * HOP_NS
    assert form().latency_ps(8) == pytest.approx(2000 * (2 * near + far))
    # One exchange between two corners, and the fold of the third rank.
    assert form().latency_ps(3) == pytest.approx(2000 * 2 * near)


def test_the_busiest_port_is_that_of_a_cube_and_on_16_sips_a_link() -> None:
    assert form().busiest(2) == 1
    assert form().busiest(4) == Fraction(3, 2)
    # Both halves, and all elements from the rank that folds onto the corner.
    assert form().busiest(3) == 2
    # From SIP 3 to SIP 2 of 16: a half over bit 0, a quarter over bit 1, the eighths of three ranks
    # over bit 2 and the sixteenth of one over bit 3; in both phases.
    eighths, sixteenths = Fraction(3, 8), Fraction(1, 16)
    assert form().busiest(16) == 2 * (Fraction(3, 4) + eighths + sixteenths)


def test_the_slice_limits_two_ranks_with_one_pe_and_the_link_with_eight() -> None:
    latency_ps = 2000 * ALPHA_NS
    # 2n at 204.8 GB/s, n at 128 GB/s.
    assert form().time_ps(2, 1 << 20) == pytest.approx(latency_ps + (2 << 20) / 0.2048)
    assert form().time_ps(2, 1 << 20, pes=8) == pytest.approx(latency_ps + (1 << 20) / 0.128)
