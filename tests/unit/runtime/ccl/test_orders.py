from collections.abc import Sequence
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.ccl.orders import best_order, order_cost, ring_order
from runtime.ccl.topologies import TOPOLOGIES
from runtime.model.sip_fabric import SipFabric
from tests.support.topologies import variant

GRIDS = [
    (kind, w, h)
    for kind in ("torus_2d", "mesh_2d_no_wrap")
    for w, h in ((2, 2), (3, 2), (4, 2), (2, 4), (3, 3), (4, 4))
]


def fabric(kind: str, w: int, h: int = 1, *, through: str = "direct") -> SipFabric:
    sides = (None, None) if kind == "ring_1d" else (w, h)
    return SipFabric(
        variant(
            system__sips__count=w * h,
            system__sips__topology=kind,
            system__sips__w=sides[0],
            system__sips__h=sides[1],
            system__sips__fabric=through,
        )
    )


def crossings(tour: Sequence[int], sips: SipFabric) -> list[int]:
    steps = zip(tour, [*tour[1:], tour[0]], strict=True)
    return [len(sips.path(*step)) - 1 for step in steps]


@pytest.mark.parametrize(("kind", "w", "h"), GRIDS)
def test_a_ring_over_all_sips_of_a_grid_follows_its_links(kind: str, w: int, h: int) -> None:
    sips = fabric(kind, w, h)
    tour = ring_order(range(w * h), sips)
    assert sorted(tour) == list(range(w * h))
    # The only grid here without a Hamiltonian cycle is the open one with two odd sides.
    longer = [step for step in crossings(tour, sips) if step > 1]
    assert longer == ([2] if (kind, w, h) == ("mesh_2d_no_wrap", 3, 3) else [])


def test_a_ring_of_sips_keeps_the_order_of_ranks() -> None:
    assert ring_order(range(6), fabric("ring_1d", 6)) == tuple(range(6))


@pytest.mark.parametrize(
    ("members", "tour"),
    [
        # A block of four, a column of an open mesh there and back, and a gap in a row.
        ((0, 1, 4, 5), (0, 1, 5, 4)),
        ((0, 4, 8, 12), (0, 8, 12, 4)),
        ((0, 3, 4, 7), (0, 3, 7, 4)),
    ],
)
def test_a_ring_of_some_sips_is_a_short_tour(members: tuple[int, ...], tour: tuple[int, ...]):
    sips = fabric("mesh_2d_no_wrap", 4, 4)
    assert sorted(crossings(ring_order(members, sips), sips)) == sorted(crossings(tour, sips))


@settings(deadline=None, max_examples=20)
@given(
    st.sampled_from([("torus_2d", 4, 3), ("mesh_2d_no_wrap", 4, 3), ("ring_1d", 12, 1)]),
    st.sets(st.integers(0, 11), min_size=3, max_size=5),
)
def test_a_tour_is_as_short_as_the_best_of_all_permutations(
    machine: tuple[str, int, int], chosen: set[int]
) -> None:
    sips, (first, *others) = fabric(*machine), sorted(chosen)
    tour = ring_order((first, *others), sips)
    assert set(tour) == chosen
    least = min(sum(crossings((first, *rest), sips)) for rest in permutations(others))
    assert sum(crossings(tour, sips)) == least


@pytest.mark.parametrize(
    ("kind", "machine", "ranks", "grid"),
    [
        *product(
            ["ring_1d", "ring_1d_unidir", "hierarchical_3level", "tree_binary", "hypercube"],
            [("torus_2d", 4, 2), ("mesh_2d_no_wrap", 3, 3), ("ring_1d", 8)],
            [None],
            [None],
        ),
        ("mesh_2d_no_wrap", ("ring_1d", 8), 8, (4, 2)),
        ("torus_2d", ("ring_1d", 6), 6, (3, 2)),
    ],
)
def test_an_order_costs_no_more_than_that_of_ranks(
    kind: str, machine: tuple[str, int], ranks: int | None, grid: tuple[int, int] | None
) -> None:
    sips = fabric(*machine)
    members = tuple(range(ranks or sips.sips))
    w, h = grid or (len(members), 1)
    steps = [TOPOLOGIES[kind](place, w, h) for place in members]
    order = best_order(members, sips, kind, TOPOLOGIES[kind], (w, h))
    assert sorted(order) == list(members)
    assert order_cost(order, sips, steps) <= order_cost(members, sips, steps)


def test_four_corners_of_a_hypercube_on_a_ring_are_neighbours() -> None:
    # Gray code: 0, 1, 3, 2 along the ring.
    order = best_order(range(4), fabric("ring_1d", 4), "hypercube", TOPOLOGIES["hypercube"], (4, 1))
    assert order == (0, 1, 3, 2)


def test_the_cost_of_a_ring_in_rank_order_on_an_open_mesh_counts_what_is_forwarded() -> None:
    # 0 1 2 / 3 4 5: 2 to 3 and 5 to 0 cross three links each, in both directions.
    sips = fabric("mesh_2d_no_wrap", 3, 2)
    steps = [TOPOLOGIES["ring_1d"](place, 6, 1) for place in range(6)]
    assert order_cost(tuple(range(6)), sips, steps) == (2 * 1, 2 * 3, 2 * (4 + 3 + 3))
    assert order_cost((0, 1, 2, 5, 4, 3), sips, steps) == (2, 2, 2 * 6)


@pytest.mark.parametrize("kind", ["fully_connected", "none", "own.topologies:star"])
def test_other_topologies_and_a_switch_keep_the_order_of_ranks(kind: str) -> None:
    ring = TOPOLOGIES["ring_1d"]
    assert best_order(range(6), fabric("torus_2d", 3, 2), kind, ring, (6, 1)) == tuple(range(6))
    switched = fabric("torus_2d", 3, 2, through="switch")
    assert best_order(range(6), switched, "ring_1d", ring, (6, 1)) == tuple(range(6))
