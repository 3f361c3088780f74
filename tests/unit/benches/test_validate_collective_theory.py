"""The formulas that `validate` holds all-reduce to, against sums written out by hand."""

from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benches.validate.accesses import Accesses
from benches.validate.all_reduce_runs import CREDIT_BYTES, ITEM_BYTES, Queues
from benches.validate.check import Bound, Check
from benches.validate.collective_theory import PeToNextSip, line_load, ring_loads
from benches.validate.variant import Variant
from tests.support.topologies import default_text

QUEUES = Queues()


def theory(slots: int = 4, slot_bytes: int = 4096) -> PeToNextSip:
    file = Variant.of(default_text()).with_values({"sip.cube_mesh": {"w": 1, "h": 1}})
    return PeToNextSip(Accesses(file), Queues(slots=slots, slot_bytes=slot_bytes))


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
def test_where_the_ranks_divide_n_every_link_carries_2_p_minus_1_over_p_n(sips: int, chunk: int) -> None:
    loads = ring_loads(sips, sips * chunk, sips * chunk, QUEUES)
    slots = -(-chunk * ITEM_BYTES // QUEUES.slot_bytes)
    data, credit = 2 * (sips - 1) * chunk * ITEM_BYTES, 2 * (sips - 1) * slots * CREDIT_BYTES
    assert {(rank, (rank + 1) % sips): data for rank in range(sips)}.items() <= loads.items()
    assert {((rank + 1) % sips, rank): credit for rank in range(sips)}.items() <= loads.items()
    assert len(loads) == 2 * sips


@given(sips=st.integers(2, 8), elements=st.integers(1, 3000), block=st.integers(1, 1000))
def test_whatever_n_is_all_links_together_carry_2_p_minus_1_n(sips: int, elements: int, block: int) -> None:
    carried = sum(ring_loads(sips, elements, block, Queues(slot_bytes=1 << 30)).values())
    blocks = [min(block, elements - start) for start in range(0, elements, block)]
    # A message that fits a slot has one credit; chunks without elements have no message.
    messages = sum(2 * (sips - 1) * min(sips, count) for count in blocks)
    assert carried == 2 * (sips - 1) * elements * ITEM_BYTES + messages * CREDIT_BYTES


def test_between_two_sips_data_and_credits_share_a_link() -> None:
    # 3000 elements each way, twice: 6000 B in two slots.
    assert ring_loads(2, 3000, 4096, QUEUES) == {(0, 1): 12_000 + 4 * 16, (1, 0): 12_000 + 4 * 16}


def test_a_line_carries_n_and_a_credit_for_every_slot_of_what_comes_back() -> None:
    assert line_load(8192, QUEUES) == 8192 + 2 * 16
    assert line_load(8193, QUEUES) == 8193 + 3 * 16


@pytest.mark.parametrize("bound", Bound)
def test_what_a_run_did_not_show_is_a_miss(bound: Bound) -> None:
    assert Check("x", "", "", 1, nan, 0.5, "ns", bound).verdict == "MISS"
    assert Check("x", "", "", 0, nan, 0, "B", bound).verdict == "MISS"
