"""Collectives under the protocol: however the SIPs are dealt to LPs and whenever frames arrive, the result is one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import torch
from tests.support.collectives import all_of_them, outcome_of_all
from tests.support.lps import reports_of
from tests.support.topologies import variant_text

SIPS = 4
LONE_PE = variant_text(
    sip__cube_mesh={"w": 1, "h": 1}, cube__pe_layout__pe_per_corner=1, cube__pe_layout__corners=["NW"]
)  # fmt: skip
ALONE = ((0, 1, 2, 3),)
DEALS = [((0,), (1, 2, 3)), ((0, 2), (1, 3)), ((3, 0), (1,), (2,)), ((0,), (1,), (2,), (3,))]


def essence(deal: tuple[tuple[int, ...], ...], count: int, seed: int) -> list[tuple[object, ...]]:
    """Digest, time and counters of every SIP after all collectives, whose results are right."""

    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm", algorithm="ring")
        np.testing.assert_array_equal(all_of_them(SIPS, count)(rank), outcome_of_all(rank, SIPS, count))

    reports = reports_of(program, deal, LONE_PE, seed=seed)
    assert [(report.finished, report.broken_law) for report in reports] == [(True, "")] * SIPS
    return [(report.digest, report.time_ps, sorted(report.counters.items())) for report in reports]


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.sampled_from(DEALS), st.sampled_from([1, 3, 1200]), st.integers(0, 1 << 30))
def test_every_collective_gives_one_digest_on_any_partition(deal: tuple[tuple[int, ...], ...], count: int, seed: int) -> None:
    assert essence(deal, count, seed) == essence(ALONE, count, 0)
