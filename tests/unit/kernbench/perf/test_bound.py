"""The bound of `perf`: bytes over links and latency, from the numbers of the topology file."""

from fractions import Fraction
from math import ceil

import pytest

from kernbench.benches.collective_perf.collective import COLLECTIVES, PerfCase
from kernbench.perf.bound import CollectiveBounds
from tests.support.topologies import small

# topology.yaml: UCIe with 128 GB/s and 8 ns a port, 20 mm between SIPs at 10 ps per mm, and 2 ns
# for the IO NoC.
LINK_GBS = 128
CROSSING_PS = 8_000 + 200 + 8_000 + 2_000
COUNT = 3 << 12


def links_part_ps(name: str, ranks: int, root: int = 0, **changes: object) -> int:
    """The time of the bytes without the latency of the first one."""
    bounds = CollectiveBounds(small(system__sips__count=ranks, **changes), 1, 1)
    large, one = (
        PerfCase(
            collective=COLLECTIVES[name],
            ranks=ranks,
            count=count,
            dtype_name="float",
            op="sum",
            root=root,
        )
        for count in (COUNT, 1)
    )
    return bounds.of(large).links_ps - bounds.of(one).links_ps


def expected_ps(shares: Fraction) -> int:
    """The time of `shares` times the bytes of `COUNT` - 1 elements over one link."""
    return ceil(shares * (COUNT - 1) * 4 * 1000 / LINK_GBS)


@pytest.mark.parametrize("ranks", [3, 4, 6])
def test_on_a_ring_both_directions_of_every_link_share_the_bytes(ranks: int):
    """All-reduce: 2(n-1) S on 2n links. With parts of S: (n-1) n S. A root has two links."""
    n = ranks
    shares = {
        "all_reduce": max(Fraction(2 * (n - 1), 2 * n), Fraction(1, 2)),
        "all_gather": Fraction(n - 1, 2),
        "reduce_scatter": Fraction(n - 1, 2),
        "broadcast": Fraction(1, 2),
        "reduce": Fraction(1, 2),
        "sendrecv": Fraction(1, 2),
        # A part crosses 1, 2, ... links in the shorter direction: the sum over all pairs is
        # n floor(n²/4).
        "alltoall": max(Fraction(n * (n * n // 4), 2 * n), Fraction(n - 1, 2)),
    }
    for name, share in shares.items():
        assert links_part_ps(name, ranks) == pytest.approx(expected_ps(share), abs=1), name


def test_two_sips_have_one_link_in_each_direction():
    assert links_part_ps("all_reduce", 2) == pytest.approx(expected_ps(Fraction(1)), abs=1)


def test_through_a_switch_every_pair_has_a_link():
    share = max(Fraction(2 * 3, 4 * 3), Fraction(1, 3))
    assert links_part_ps("all_reduce", 4, system__sips__fabric="switch") == pytest.approx(
        expected_ps(share), abs=1
    )


def test_the_two_links_of_a_corner_limit_a_broadcast_on_a_mesh():
    grid = {"system__sips__topology": "mesh_2d_no_wrap", "system__sips__w": 3, "system__sips__h": 3}
    assert links_part_ps("broadcast", 9, root=4, **grid) == pytest.approx(
        expected_ps(Fraction(1, 2)), abs=1
    )


@pytest.mark.parametrize(
    ("name", "root", "remaining_hops"),
    [
        ("all_reduce", -1, 3),
        ("all_gather", -1, 3),
        ("alltoall", -1, 3),
        ("broadcast", 0, 3),
        ("reduce", 5, 3),
        ("sendrecv", -1, 1),
    ],
)
def test_a_byte_must_cross_to_the_farthest_rank_that_needs_it(
    name: str, root: int, remaining_hops: int
):
    bounds = CollectiveBounds(small(system__sips__count=6), 1, 1)
    farthest = bounds.of(
        PerfCase(
            collective=COLLECTIVES[name], ranks=6, count=1, dtype_name="half", op="sum", root=root
        )
    )
    nearest = bounds.of(
        PerfCase(
            collective=COLLECTIVES["sendrecv"],
            ranks=6,
            count=1,
            dtype_name="half",
            op="none",
            root=-1,
        )
    )
    assert farthest.latency_ps - nearest.latency_ps == (remaining_hops - 1) * CROSSING_PS


def test_the_larger_part_is_the_bound():
    bounds = CollectiveBounds(small(system__sips__count=6), 1, 1)
    tiny, large = (
        bounds.of(
            PerfCase(
                collective=COLLECTIVES["all_reduce"],
                ranks=6,
                count=count,
                dtype_name="half",
                op="sum",
                root=-1,
            )
        )
        for count in (1, 1 << 20)
    )
    assert (tiny.time_ps, large.time_ps) == (tiny.latency_ps, large.links_ps)


def test_one_rank_alone_has_nothing_to_send():
    alone = CollectiveBounds(small(system__sips__count=1), 1, 1).of(
        PerfCase(
            collective=COLLECTIVES["all_reduce"],
            ranks=1,
            count=8,
            dtype_name="half",
            op="sum",
            root=-1,
        )
    )
    assert alone.time_ps == 0
