"""Messages and bytes on links of each all-reduce, against formulas and sums written out by hand."""

from math import floor, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench.oracle.theory.alpha_beta import RingQueue
from kernbench.oracle.theory.collectives.all_reduce_traffic import (
    MESSAGES,
    credits_bytes,
    link_loads,
)
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES
from kernbench.oracle.theory.paths.sip_grid import SipGrid, grid_of

QUEUE = RingQueue()


@given(sips=st.integers(3, 8), chunk=st.integers(1, 4000))
def test_where_the_ranks_divide_n_every_link_carries_2_p_minus_1_over_p_n(
    sips: int, chunk: int
) -> None:
    loads = link_loads("ring", SipGrid(sips), sips * chunk, QUEUE)
    slots = -(-chunk * ITEM_BYTES // QUEUE.slot_bytes)
    data, credit = 2 * (sips - 1) * chunk * ITEM_BYTES, 2 * (sips - 1) * slots * QUEUE.credit_bytes
    assert {(rank, (rank + 1) % sips): data for rank in range(sips)}.items() <= loads.items()
    assert {((rank + 1) % sips, rank): credit for rank in range(sips)}.items() <= loads.items()
    assert len(loads) == 2 * sips


@given(sips=st.integers(2, 8), elements=st.integers(1, 500), message=st.integers(1, 200))
def test_all_links_together_carry_2_p_minus_1_n_for_any_n(
    sips: int, elements: int, message: int
) -> None:
    queue = RingQueue(slots=1, slot_bytes=message * ITEM_BYTES)
    carried, block = (
        sum(link_loads("ring", SipGrid(sips), elements, queue).values()),
        sips * message,
    )
    blocks = [min(block, elements - start) for start in range(0, elements, block)]
    # A message that fits a slot has one credit; chunks without elements have no message.
    messages = sum(2 * (sips - 1) * min(sips, count) for count in blocks)
    assert carried == 2 * (sips - 1) * elements * ITEM_BYTES + messages * QUEUE.credit_bytes


def test_between_two_sips_data_and_credits_share_a_link() -> None:
    # 3000 elements each way, twice: 6000 B in two slots.
    assert link_loads("ring", SipGrid(2), 3000, QUEUE) == {
        (0, 1): 12_000 + 4 * 16,
        (1, 0): 12_000 + 4 * 16,
    }


def elements_sent(algorithm: str, sips: int, elements: int) -> int:
    messages, _ = MESSAGES[algorithm]
    return sum(count for _, _, count in messages(sips, elements))


@given(sips=st.integers(1, 9), n=st.integers(1, 1000))
def test_all_ranks_together_send_the_bytes_of_the_formulas_for_any_n(sips: int, n: int) -> None:
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
    loads = link_loads("mesh", SipGrid(w, h, wraps=False), 9 * w, RingQueue(slot_bytes=1 << 20))
    # Each link of a line carries the message once in each direction, in a chunk per rank of the
    # line.
    for (source, target), load in loads.items():
        # One credit per chunk sent in the opposite direction; it takes the same link as the data.
        data, credits_ = (9 * w, w) if source // w == target // w else (9, h)
        assert load == data * ITEM_BYTES + credits_ * QUEUE.credit_bytes


def test_a_message_returns_a_credit_for_each_slot() -> None:
    assert credits_bytes(8192, QUEUE) == 2 * 16
    assert credits_bytes(8193, QUEUE) == 3 * 16
