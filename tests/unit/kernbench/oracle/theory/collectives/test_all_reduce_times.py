"""Times of each all-reduce, against sums of single commands written out by hand."""

from functools import cache

import pytest

from kernbench.oracle.theory.collectives.all_reduce_times import ALL_REDUCE_FORMS
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.support.topologies import default_text

ONE_CUBE = TopologyFile.of(default_text()).with_values({"sip.cube_mesh": {"w": 1, "h": 1}})


@cache
def costs() -> KernelCosts:
    return KernelCosts(ONE_CUBE, 4096)


# An access of 32 B in ns: issue, MMU, DMA, crossbar, request, bytes at 25.6 GB/s of one channel,
# crossbar. A load waits for the latency of HBM as well.
ACCESS_NS = 3 + 1 + 2 + 2 + 0.063 + 1.25 + 2
LOAD_NS = ACCESS_NS + 52
# To the next SIP: alpha, bytes at 128 GB/s, then DMA and twice the bytes through TCM at 512 GB/s.
# Each further SIP: two UCIe ports, an IO NoC, 20 mm.
ALPHA_NS, HOP_NS, BYTES_NS, COPY_NS = 74.54, 2 * 8 + 2 + 0.2, 0.25, 2 + 2 * 0.063
# Issue, two operands, 4 + 1 cycles, the sum.
ADD_NS = 3 + 0.125 + 5 + 0.063
ISSUE_NS = 3


def time_ns(algorithm: str, sips: int, nbytes: int = 32) -> float:
    return ALL_REDUCE_FORMS[algorithm].time_ps(costs(), sips, nbytes) / 1000


def test_ring_naive_posts_all_receives_and_takes_a_step_for_each_other_rank() -> None:
    step_ns = ISSUE_NS + ALPHA_NS + BYTES_NS + COPY_NS + ADD_NS
    assert time_ns("ring_naive", 3) == pytest.approx(LOAD_NS + ACCESS_NS + 2 * step_ns)


def test_a_tree_goes_up_and_down_over_its_links() -> None:
    message_ns = ALPHA_NS + BYTES_NS + COPY_NS
    assert time_ns("tree", 2) == pytest.approx(
        ISSUE_NS + LOAD_NS + ACCESS_NS + 2 * message_ns + ADD_NS
    )
    # Of four numbers, the last is two messages below number 0; parents and children are neighbours.
    # Number 0 adds two messages, number 1 one.
    assert time_ns("tree", 4) == pytest.approx(
        ISSUE_NS + LOAD_NS + ACCESS_NS + 4 * message_ns + 3 * ADD_NS
    )


def test_recursive_doubling_exchanges_along_a_gray_code_of_the_ring() -> None:
    near_ns = ISSUE_NS + ALPHA_NS + BYTES_NS + COPY_NS + ADD_NS
    assert time_ns("recursive_doubling", 4) == pytest.approx(LOAD_NS + ACCESS_NS + 2 * near_ns)
    # Along 0 1 3 2 6 7 5 4, partners are 1, then 3 or 1, then 1 or 3 links apart.
    assert time_ns("recursive_doubling", 8) == pytest.approx(
        LOAD_NS + ACCESS_NS + 3 * near_ns + 2 * HOP_NS
    )


def test_halving_sends_half_and_doubling_brings_it_back() -> None:
    # 16 B: 0.125 ns on the link, 0.032 ns through TCM, an operation of five cycles, 0.625 ns on one
    # channel.
    there_ns = ISSUE_NS + ALPHA_NS + 0.125
    add_ns, store_ns = 3 + 0.094 + 5, ACCESS_NS - 0.625
    # Each half is released; the command of the own store, with its translation, is before the
    # second exchange.
    assert time_ns("halving_doubling", 2) == pytest.approx(
        LOAD_NS + 2 * there_ns + add_ns + ISSUE_NS + (ISSUE_NS + 1) + store_ns + ISSUE_NS
    )


def test_a_mesh_of_two_exchanges_halves_that_are_copied_and_stores_them_in_turn() -> None:
    there_ns = ISSUE_NS + ALPHA_NS + 0.125 + 2 + 2 * 0.032
    add_ns, store_ns = 3 + 0.094 + 5, ACCESS_NS - 0.625
    assert time_ns("mesh", 2) == pytest.approx(LOAD_NS + 2 * there_ns + add_ns + 2 * store_ns)


def test_hierarchical_on_one_pe_per_sip_is_a_ring_whose_parts_are_joined() -> None:
    file = ONE_CUBE.with_values(
        {"cube.pe_layout.pe_per_corner": 1, "cube.pe_layout.corners": ["NW"]}
    )
    there_ns = ALPHA_NS + 0.125 + 2 + 2 * 0.032
    add_ns, join_ns = 3 + 0.094 + 5, 3 + 0.125 + 5
    expected_ns = LOAD_NS + ACCESS_NS + 2 * there_ns + add_ns + join_ns
    assert ALL_REDUCE_FORMS["hierarchical"].time_ps(
        KernelCosts(file, 4096), 2, 32
    ) == pytest.approx(1000 * expected_ns)


def test_a_forwarded_message_waits_if_the_bytes_of_the_forwarding_sip_take_longer() -> None:
    # 4 KiB take 32 ns on the link, a crossing 18.2 ns; 1 KiB takes 8 ns.
    assert costs().forwarded_ps(2, 4096) == 1000 * round(ALPHA_NS + 32 + 32, 3)
    assert costs().forwarded_ps(2, 1024) == 1000 * round(ALPHA_NS + HOP_NS + 8, 3)
