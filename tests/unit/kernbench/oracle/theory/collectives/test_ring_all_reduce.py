"""Closed forms of the ring all-reduce and of a queue pair, against sums written out by hand."""

import pytest

from kernbench.oracle.theory.alpha_beta import RingQueue
from kernbench.oracle.theory.collectives.ring_all_reduce import RingAllReduceTimes
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.support.topologies import default_text

ONE_CUBE = TopologyFile.of(default_text()).with_values({"sip.cube_mesh": {"w": 1, "h": 1}})


def theory(slots: int = 4, slot_bytes: int = 4096) -> RingAllReduceTimes:
    return RingAllReduceTimes(ONE_CUBE, RingQueue(slots=slots, slot_bytes=slot_bytes))


def test_a_message_without_bytes_takes_its_command_and_a_slot_without_its_bytes() -> None:
    # docs/internals/rules.md: a slot of 4 KiB to the next SIP takes 103.54 ns, of which 32 ns are
    # for its bytes; issue takes 2 + 1 ns.
    assert theory().link.alpha_ps == 3_000 + 103_540 - 32_000


def test_a_round_is_a_slot_its_copy_and_its_credit() -> None:
    # DMA 2 ns and two passes of 8 ns through TCM; the route of the credit without DMA, with
    # 16 B / 128 GB/s = 0.125 ns.
    assert theory().round_trip_ps == 103_540 + 18_000 + (103_540 - 32_000 - 2_000 + 125)


def test_the_rate_is_a_ring_a_round_until_the_link_is_full() -> None:
    round_ns = 103.54 + 18 + 69.665
    assert theory(slots=3).rate_gbs() == pytest.approx(3 * 4096 / round_ns)
    # Five slots take 160 ns on the link, six 192 ns, and a round takes 191 ns.
    assert theory(slots=5).rate_gbs() < 128 == theory(slots=6).rate_gbs()


def test_slots_so_small_that_commands_take_longer_are_no_faster_than_these() -> None:
    # 256 B take 2 ns on the link; a command that receives takes 3 ns, its copy 2 ns of DMA and
    # twice 0.5 ns.
    assert theory(slots=64, slot_bytes=256).rate_gbs() == pytest.approx(256 / 6)


def test_alpha_beta_counts_each_link_2_p_minus_1_over_p_times() -> None:
    assert theory().link_ps(4, 1 << 20) == 1.5 * (1 << 20) / 128 * 1000
    form_ps = 6 * 74_540 + theory().link_ps(4, 1 << 20)
    assert theory().alpha_beta_ps(4, 1 << 20, pes=8) == form_ps


def test_on_two_sips_the_slice_of_one_pe_is_busier_than_the_link() -> None:
    # n bytes over the link at 128 GB/s; n read and n written at 8 x 32 x 0.8 = 204.8 GB/s.
    form_ps = 2 * 74_540 + 2 * (1 << 20) / 204.8 * 1000
    assert theory().alpha_beta_ps(2, 1 << 20, pes=1) == form_ps
    assert theory().alpha_beta_ps(2, 1 << 20, pes=2) == 2 * 74_540 + theory().link_ps(2, 1 << 20)
