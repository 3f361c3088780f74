"""The recurrence of the pipelined ring where a closed form can be derived, and beside the model."""

from dataclasses import replace
from fractions import Fraction

import pytest

from kernbench.oracle.theory.collectives.ring_recurrence import (
    IterationCosts,
    RingMessages,
    all_reduce_ps,
)
from kernbench.studies.milestone_1h_ccl.networks import NETWORKS
from kernbench.studies.milestone_1h_ccl.rows import plan_points
from kernbench.studies.milestone_1h_ccl.study import CclStudy
from runtime.core.config.config_file import default_file, read_text

ALPHA_PS, BYTE_PS, NBYTES = 100_000, 10, 8192
MESSAGE_PS = NBYTES * BYTE_PS


def no_time(_nbytes: int) -> int:
    return 0


LINK_ONLY = IterationCosts(
    command_ps=0,
    access_ps=0,
    alpha_ps=Fraction(ALPHA_PS),
    credit_ps=None,
    link_ps=lambda nbytes: nbytes * BYTE_PS,
    left_ps=no_time,
    add_ps=no_time,
    load_ps=no_time,
    store_ps=no_time,
    slice_ps=no_time,
    packet_ps=no_time,
)


def messages(ranks: int, count: int, *, lag: int = 4, in_ring: int = 8) -> RingMessages:
    return RingMessages(
        ranks=ranks,
        sizes=[NBYTES] * count,
        in_ring=in_ring,
        lag=lag,
        held=lag // 2,
        posted=in_ring,
    )


def test_one_message_a_step_pays_every_alpha():
    # 2(p-1) successive messages.
    assert all_reduce_ps(messages(4, 1), LINK_ONLY) == 6 * (ALPHA_PS + MESSAGE_PS)


def test_messages_of_a_block_follow_each_other_on_the_link():
    # The first message takes the path of the line above; the second one ends one message later.
    assert all_reduce_ps(messages(4, 2), LINK_ONLY) == 6 * (ALPHA_PS + MESSAGE_PS) + MESSAGE_PS


def test_a_full_link_hides_every_alpha_but_one():
    # Four messages take longer than a message and its alpha: 7 blocks of 4, 6 steps each.
    assert 4 * MESSAGE_PS > ALPHA_PS + MESSAGE_PS
    assert all_reduce_ps(messages(4, 28), LINK_ONLY) == 6 * 28 * MESSAGE_PS + ALPHA_PS


def test_a_message_waits_for_the_credit_of_the_slots_it_needs():
    # A ring of one message: it arrives, is released at once, and its credit allows the next one.
    credit_ps = 70_000
    costs = replace(LINK_ONLY, link_ps=no_time, credit_ps=Fraction(credit_ps))
    ring = messages(2, 5, lag=1, in_ring=1)
    assert all_reduce_ps(ring, costs) == 10 * (ALPHA_PS + credit_ps) - credit_ps
    assert all_reduce_ps(ring, costs.without_credits()) == 10 * ALPHA_PS


def test_additions_count_in_the_steps_that_reduce():
    costs = replace(LINK_ONLY, add_ps=lambda nbytes: nbytes)
    # Three of the six steps.
    assert all_reduce_ps(messages(4, 1), costs) == 6 * (ALPHA_PS + MESSAGE_PS) + 3 * NBYTES
    assert all_reduce_ps(messages(4, 1), costs.without_additions()) == 6 * (ALPHA_PS + MESSAGE_PS)


def test_the_first_load_shares_the_slice_with_the_loads_behind_it():
    # Four loads ahead, of two packets each: the second packet of the first load is the fifth.
    costs = replace(
        LINK_ONLY,
        load_ps=lambda nbytes: 5 + nbytes,
        slice_ps=lambda nbytes: nbytes,
        packet_ps=lambda nbytes: nbytes // 2,
        store_ps=lambda _: 11,
    )
    first_ps = 5 + 5 * NBYTES // 2
    moving_ps = 6 * (ALPHA_PS + MESSAGE_PS) + MESSAGE_PS
    assert all_reduce_ps(messages(4, 2), costs) == first_ps + moving_ps + 11
    assert all_reduce_ps(messages(4, 2), costs.without_memory()) == moving_ps


@pytest.mark.slow
def test_the_recurrence_explains_a_simulated_ring():
    topology, ccl = (read_text(default_file(name)) for name in ("topology.yaml", "ccl.yaml"))
    points = plan_points(topology, ccl, 65_536)
    for nbytes, within in ((256, 0), (65_536, 0.03)):
        row = CclStudy().measure(
            next(
                point
                for point in points
                if (point.network, point.algorithm, point.nbytes) == (NETWORKS[0], "ring", nbytes)
            )
        )
        assert row.parts is not None
        # Exact while no packets meet at the port of the TCM.
        assert row.parts.total_ps == pytest.approx(row.time_ps, rel=within, abs=1)
