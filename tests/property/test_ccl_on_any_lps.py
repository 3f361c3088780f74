"""Collectives give one result for every partition into LPs and every delay of frames.

On the mesh, and between ranks that are not neighbours, SIPs forward packets of others.
"""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import DPPolicy, torch
from tests.support.collectives import (
    all_of_them,
    contribution,
    groups_beside_kernels,
    outcome_of_all,
    outcome_of_groups,
)
from tests.support.lps import reports_of
from tests.support.topologies import variant_text

dist = torch.distributed
SIPS = 4
ALONE = ((0, 1, 2, 3),)
DEALS = [((0,), (1, 2, 3)), ((0, 2), (1, 3)), ((3, 0), (1,), (2,)), ((0,), (1,), (2,), (3,))]
ALGORITHMS = [
    "ring",
    "ring_naive",
    "mesh",
    "torus",
    "tree",
    "recursive_doubling",
    "halving_doubling",
    "intercube",
    "hierarchical",
]

deals, seeds, grids = (
    st.sampled_from(DEALS),
    st.integers(0, 1 << 30),
    st.sampled_from(["ring_1d", "mesh_2d_no_wrap"]),
)


def chips(grid: str, *corners: str) -> str:
    """Four SIPs in a ring or in two rows, with a PE at each corner of one cube."""
    return variant_text(
        system__sips__count=SIPS,
        system__sips__topology=grid,
        sip__cube_mesh={"w": 1, "h": 1},
        cube__pe_layout__pe_per_corner=1,
        cube__pe_layout__corners=list(corners),
    )


def essence(
    program: Callable[[int], None], topology: str, deal: tuple[tuple[int, ...], ...], seed: int
) -> list[tuple[object, ...]]:
    """Digest, time and counters of every SIP."""
    reports = reports_of(program, deal, topology, seed=seed)
    assert [(report.finished, report.broken_law) for report in reports] == [(True, "")] * SIPS
    return [(report.digest, report.time_ps, sorted(report.counters.items())) for report in reports]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=3, deadline=None)
@given(deal=deals, seed=seeds, grid=grids, count=st.sampled_from([1, 7, 150]))
def test_every_all_reduce_gives_one_digest_on_any_partition(
    algorithm: str, deal: tuple[tuple[int, ...], ...], seed: int, grid: str, count: int
) -> None:
    rows = np.array([contribution(rank, (2, count)) for rank in range(SIPS)])
    expected = rows.sum(axis=(0, 1) if algorithm == "hierarchical" else 0)

    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm=algorithm)
        tensor = torch.from_numpy(
            rows[rank], dp=DPPolicy(pe="row_wise", num_pes=1 if algorithm == "intercube" else 2)
        )
        dist.all_reduce(tensor)
        assert (tensor.numpy() == expected).all()

    topology = chips("mesh_2d_no_wrap" if algorithm == "torus" else grid, "NW", "SE")
    assert essence(program, topology, deal, seed) == essence(program, topology, ALONE, 0)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(deals, seeds, st.sampled_from([3, 1200]))
def test_every_collective_gives_one_digest_on_any_partition(
    deal: tuple[tuple[int, ...], ...], seed: int, count: int
) -> None:
    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="ring")
        np.testing.assert_array_equal(
            all_of_them(range(SIPS), count)(rank), outcome_of_all(rank, range(SIPS), count)
        )

    topology = chips("ring_1d", "NW")
    assert essence(program, topology, deal, seed) == essence(program, topology, ALONE, 0)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(deals, seeds, grids, st.sampled_from([1, 37]))
def test_groups_beside_kernels_and_transfers_give_one_digest_on_any_partition(
    deal: tuple[tuple[int, ...], ...], seed: int, grid: str, count: int
) -> None:
    def program(rank: int) -> None:
        np.testing.assert_array_equal(
            groups_beside_kernels(rank, count),
            outcome_of_groups(rank, count, dist.get_order()),
        )

    topology = chips(grid, "NW")
    assert essence(program, topology, deal, seed) == essence(program, topology, ALONE, 0)
