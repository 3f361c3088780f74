"""The formulas that `validate` holds all-reduce to, against sums written out by hand."""

from functools import cache
from math import floor, log2, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench.validate.accesses import Accesses
from kernbench.validate.all_reduce_runs import CREDIT_BYTES, ITEM_BYTES, Queues
from kernbench.validate.all_reduce_times import THEORIES
from kernbench.validate.all_reduce_traffic import MESSAGES, SipGrid, grid_of, line_load, link_loads
from kernbench.validate.check import Bound, Check
from kernbench.validate.collective_theory import PeToNextSip
from kernbench.validate.kernel_costs import KernelCosts
from kernbench.validate.variant import Variant
from tests.support.topologies import default_text

QUEUES = Queues()
ONE_CUBE = Variant.of(default_text()).with_values({"sip.cube_mesh": {"w": 1, "h": 1}})


def theory(slots: int = 4, slot_bytes: int = 4096) -> PeToNextSip:
    return PeToNextSip(Accesses(ONE_CUBE), Queues(slots=slots, slot_bytes=slot_bytes))


def test_a_message_without_bytes_takes_its_command_and_a_slot_without_its_bytes() -> None:
    # docs/model.md: a slot of 4 KiB to the next SIP takes 103.54 ns, 32 of them for its bytes; a command takes 2 + 1 ns.
    assert theory().alpha_ps == 3_000 + 103_540 - 32_000


def test_a_round_is_a_slot_its_copy_and_its_credit() -> None:
    # DMA 2 ns and two passes of 8 ns through TCM; the way home without DMA, 16 B / 128 GB/s = 0.125 ns.
    assert theory().round_ps == 103_540 + 18_000 + (103_540 - 32_000 - 2_000 + 125)


def test_the_rate_is_a_ring_a_round_until_the_link_is_full() -> None:
    round_ns = 103.54 + 18 + 69.665
    assert theory(slots=3).rate_gbs() == pytest.approx(3 * 4096 / round_ns)
    # Five slots take 160 ns on the link, six 192 ns, and a round takes 191 ns.
    assert theory(slots=5).rate_gbs() < 128 == theory(slots=6).rate_gbs()
    assert theory().slots_for_a_stream == 6 + 1


def test_slots_so_small_that_commands_take_longer_are_no_faster_than_these() -> None:
    # 256 B take 2 ns on the link; a command that receives takes 3 ns, its copy 2 ns of DMA and twice 0.5 ns.
    assert theory(slots=64, slot_bytes=256).rate_gbs() == pytest.approx(256 / 6)


def test_a_block_on_one_pe_is_the_sum_of_its_commands() -> None:
    # Two messages of 16 KiB. Load of 32 KiB: 3 + MMU 1 + DMA 2 + crossbar 2 + request 0.063 + 160 + crossbar 2 ns.
    load_ns = 3 + 1 + 2 + 2 + 0.063 + 160 + 2
    # A message in four slots, 32 ns apart, and the copy of the last.
    step_ns = 3 + 103.54 + 3 * 32 + 18
    # Operands 64 ns, 4 + 4096/128 cycles, sum 32 ns.
    add_ns = 3 + 64 + 36 + 32
    store_ns = 3 + 1 + 2 + 2 + 80 + 2 + 0.063
    assert theory().block_ps(2) == round(1000 * (load_ns + 2 * step_ns + add_ns + 2 * store_ns))
    assert theory().ends_ps(2) == round(1000 * (load_ns + 18 + 2 * store_ns))


def test_alpha_beta_counts_each_link_2_p_minus_1_over_p_times() -> None:
    assert theory().wire_ps(4, 1 << 20) == 1.5 * (1 << 20) / 128 * 1000
    assert theory().alpha_beta_ps(4, 1 << 20) == 6 * 74_540 + theory().wire_ps(4, 1 << 20)


@given(sips=st.integers(3, 8), chunk=st.integers(1, 4000))
def test_where_the_ranks_divide_n_every_link_carries_2_p_minus_1_over_p_n(
    sips: int, chunk: int
) -> None:
    loads = link_loads("ring", SipGrid(sips), sips * chunk, QUEUES)
    slots = -(-chunk * ITEM_BYTES // QUEUES.slot_bytes)
    data, credit = 2 * (sips - 1) * chunk * ITEM_BYTES, 2 * (sips - 1) * slots * CREDIT_BYTES
    assert {(rank, (rank + 1) % sips): data for rank in range(sips)}.items() <= loads.items()
    assert {((rank + 1) % sips, rank): credit for rank in range(sips)}.items() <= loads.items()
    assert len(loads) == 2 * sips


@given(sips=st.integers(2, 8), elements=st.integers(1, 500), message=st.integers(1, 200))
def test_whatever_n_is_all_links_together_carry_2_p_minus_1_n(
    sips: int, elements: int, message: int
) -> None:
    queues = Queues(slots=1, slot_bytes=message * ITEM_BYTES)
    carried, block = (
        sum(link_loads("ring", SipGrid(sips), elements, queues).values()),
        sips * message,
    )
    blocks = [min(block, elements - start) for start in range(0, elements, block)]
    # A message that fits a slot has one credit; chunks without elements have no message.
    messages = sum(2 * (sips - 1) * min(sips, count) for count in blocks)
    assert carried == 2 * (sips - 1) * elements * ITEM_BYTES + messages * CREDIT_BYTES


def test_between_two_sips_data_and_credits_share_a_link() -> None:
    # 3000 elements each way, twice: 6000 B in two slots.
    assert link_loads("ring", SipGrid(2), 3000, QUEUES) == {
        (0, 1): 12_000 + 4 * 16,
        (1, 0): 12_000 + 4 * 16,
    }


def elements_sent(algorithm: str, sips: int, elements: int) -> int:
    messages, _ = MESSAGES[algorithm]
    return sum(count for _, _, count in messages(sips, elements))


@given(sips=st.integers(1, 9), n=st.integers(1, 1000))
def test_all_ranks_together_send_what_the_formulas_say_whatever_n_is(sips: int, n: int) -> None:
    inside = 2 ** floor(log2(sips))
    beyond = 2 * (sips - inside) * n
    assert elements_sent("ring_naive", sips, n) == sips * (sips - 1) * n
    assert elements_sent("tree", sips, n) == 2 * (sips - 1) * n
    assert elements_sent("recursive_doubling", sips, n) == inside * log2(inside) * n + beyond
    assert elements_sent("halving_doubling", sips, n) == 2 * (inside - 1) * n + beyond


@pytest.mark.parametrize(
    ("sips", "w", "h"), [(2, 2, 1), (3, 3, 1), (4, 2, 2), (6, 3, 2), (8, 4, 2), (9, 3, 3)]
)
def test_on_a_mesh_rows_carry_n_and_columns_their_part_of_it_in_both_directions(
    sips: int, w: int, h: int
) -> None:
    assert grid_of(sips) == (w, h)
    loads = link_loads("mesh", SipGrid(w, h, wraps=False), 9 * w, Queues(slot_bytes=1 << 20))
    # Each link of a line carries the message once in each direction, cut into a chunk for each rank of the line.
    for (source, target), load in loads.items():
        # A credit for each chunk that is sent, and one for each that comes, which is on the same link.
        data, credits_ = (9 * w, w) if source // w == target // w else (9, h)
        assert load == data * ITEM_BYTES + credits_ * CREDIT_BYTES


def test_ways_round_a_ring_are_the_shorter_ones_and_on_a_grid_columns_come_first() -> None:
    ring, grid = SipGrid(4), SipGrid(3, 2, wraps=False)
    assert [ring.path(0, 1), ring.path(0, 3), ring.path(3, 1)] == [[0, 1], [0, 3], [3, 0, 1]]
    assert [grid.path(0, 5), grid.path(5, 0)] == [[0, 1, 2, 5], [5, 4, 3, 0]]
    assert (ring.diameter, grid.diameter) == (2, 3)
    assert (ring.most_neighbours, grid.most_neighbours, SipGrid(2).most_neighbours) == (2, 3, 1)


@cache
def costs() -> KernelCosts:
    return KernelCosts(Accesses(ONE_CUBE), 4096)


# Of 32 B, in ns: a command, MMU, DMA, crossbar, request, bytes at 25.6 GB/s of one channel, crossbar; the same for a store.
ACCESS_NS = 3 + 1 + 2 + 2 + 0.063 + 1.25 + 2
# To the next SIP: alpha, bytes at 128 GB/s, then DMA and twice the bytes through TCM at 512 GB/s. A SIP more: two UCIe ports,
# an IO NoC, 20 mm.
ALPHA_NS, HOP_NS, BYTES_NS, COPY_NS = 74.54, 2 * 8 + 2 + 0.2, 0.25, 2 + 2 * 0.063
# A command, two operands, 4 + 1 cycles, the sum.
ADD_NS = 3 + 0.125 + 5 + 0.063
ISSUE_NS = 3


def time_ns(algorithm: str, sips: int, nbytes: int = 32) -> float:
    return THEORIES[algorithm].time_ps(costs(), sips, nbytes) / 1000


def test_ring_naive_asks_for_all_and_takes_a_step_for_each_other_rank() -> None:
    step_ns = ISSUE_NS + ALPHA_NS + BYTES_NS + COPY_NS + ADD_NS
    assert time_ns("ring_naive", 3) == pytest.approx(2 * ACCESS_NS + 2 * step_ns)


def test_a_tree_goes_up_and_down_over_its_links() -> None:
    message_ns = ALPHA_NS + BYTES_NS + COPY_NS
    assert time_ns("tree", 2) == pytest.approx(ISSUE_NS + 2 * ACCESS_NS + 2 * message_ns + ADD_NS)
    # Of four, rank 3 is two links below rank 0, the first of them over two SIPs; rank 0 adds two messages, rank 1 one.
    far_ns = 2 * (2 * message_ns + HOP_NS)
    assert time_ns("tree", 4) == pytest.approx(ISSUE_NS + 2 * ACCESS_NS + far_ns + 3 * ADD_NS)


def test_recursive_doubling_exchanges_with_ranks_twice_as_far_each_time() -> None:
    near_ns = ISSUE_NS + ALPHA_NS + BYTES_NS + COPY_NS + ADD_NS
    assert time_ns("recursive_doubling", 4) == pytest.approx(2 * ACCESS_NS + 2 * near_ns + HOP_NS)
    assert time_ns("recursive_doubling", 8) == pytest.approx(
        2 * ACCESS_NS + 3 * near_ns + (1 + 3) * HOP_NS
    )


def test_halving_sends_half_and_doubling_brings_it_back() -> None:
    # 16 B: 0.125 ns on the link, 0.032 ns through TCM, an operation of five cycles, 0.625 ns on one channel.
    there_ns = ISSUE_NS + ALPHA_NS + 0.125 + 2 + 2 * 0.032
    add_ns, store_ns = 3 + 0.063 + 5 + 0.032, ACCESS_NS - 0.625
    assert time_ns("halving_doubling", 2) == pytest.approx(
        ACCESS_NS + 2 * there_ns + add_ns + 2 * store_ns
    )
    assert time_ns("mesh", 2) == time_ns("halving_doubling", 2)


def test_hierarchical_on_one_pe_a_sip_is_a_ring_whose_parts_are_put_together() -> None:
    file = ONE_CUBE.with_values(
        {"cube.pe_layout.pe_per_corner": 1, "cube.pe_layout.corners": ["NW"]}
    )
    there_ns = ALPHA_NS + 0.125 + 2 + 2 * 0.032
    add_ns, join_ns = 3 + 0.063 + 5 + 0.032, 3 + 0.063 + 5 + 0.063
    expected_ns = 2 * ACCESS_NS + 2 * there_ns + add_ns + join_ns
    assert THEORIES["hierarchical"].time_ps(
        KernelCosts(Accesses(file), 4096), 2, 32
    ) == pytest.approx(1000 * expected_ns)


def test_what_is_forwarded_waits_for_what_a_sip_sends_itself_if_that_takes_longer_than_a_crossing() -> (
    None
):
    # 4 KiB take 32 ns on the link, a crossing 18.2 ns; 1 KiB takes 8 ns.
    assert costs().passed_on_ps(2, 4096) == 1000 * round(ALPHA_NS + 32 + 32, 3)
    assert costs().passed_on_ps(2, 1024) == 1000 * round(ALPHA_NS + HOP_NS + 8, 3)


def test_a_line_carries_n_and_a_credit_for_every_slot_of_what_comes_back() -> None:
    assert line_load(8192, QUEUES) == 8192 + 2 * 16
    assert line_load(8193, QUEUES) == 8193 + 3 * 16


@pytest.mark.parametrize("bound", Bound)
def test_what_a_run_did_not_show_is_a_miss(bound: Bound) -> None:
    assert Check("x", "", "", 1, nan, 0.5, "ns", bound).verdict == "MISS"
    assert Check("x", "", "", 0, nan, 0, "B", bound).verdict == "MISS"
