"""The bound of `perf`: launch, commands, routes and links, from the numbers of the file."""

from fractions import Fraction
from math import ceil

import pytest

from kernbench.benches.collective_perf.bound import CollectiveBounds, TimeBound, mean
from kernbench.benches.collective_perf.collective import COLLECTIVES, PerfCase
from kernbench.oracle.theory.kernels.launches import LaunchTimes
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.support.topologies import small, variant

# topology.yaml: UCIe with 128 GB/s and 8 ns a port, 20 mm between SIPs at 10 ps per mm, and 2 ns
# for the IO NoC.
LINK_GBS = 128
CROSSING_PS = 8_000 + 200 + 8_000 + 2_000
COUNT = 3 << 12


def case(name: str, ranks: int, count: int = 1, root: int = 0) -> PerfCase:
    return PerfCase(
        collective=COLLECTIVES[name],
        ranks=ranks,
        count=count,
        dtype_name="float",
        op="sum",
        root=root,
    )


def links_part_ps(name: str, ranks: int, root: int = 0, **changes: object) -> int:
    """The time of the bytes without the latency of the first one."""
    bounds = CollectiveBounds(small(system__sips__count=ranks, **changes), [3], 1)
    large, one = (
        max(bound.links_ps for bound in bounds.of(case(name, ranks, count, root)))
        for count in (COUNT, 1)
    )
    return large - one


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


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_through_a_switch_all_bytes_of_a_sip_pass_its_one_port(ranks: int):
    """All-reduce: 2(n-1) S on n ports, one for each direction. With parts of S: (n-1) n S."""
    n = ranks
    shares = {
        "all_reduce": max(Fraction(2 * (n - 1), n), Fraction(1)),
        "all_gather": Fraction(n - 1),
        "alltoall": Fraction(n - 1),
        "broadcast": Fraction(1),
        "sendrecv": Fraction(1),
    }
    for name, share in shares.items():
        found = links_part_ps(name, ranks, system__sips__fabric="switch")
        assert found == pytest.approx(expected_ps(share), abs=1), name


def test_the_two_links_of_a_corner_limit_a_broadcast_on_a_mesh():
    grid = {"system__sips__topology": "mesh_2d_no_wrap", "system__sips__w": 3, "system__sips__h": 3}
    assert links_part_ps("broadcast", 9, root=4, **grid) == pytest.approx(
        expected_ps(Fraction(1, 2)), abs=1
    )


@pytest.mark.parametrize(
    ("name", "hops"), [("all_reduce", 3), ("all_gather", 3), ("alltoall", 3), ("sendrecv", 1)]
)
def test_a_byte_must_cross_to_the_farthest_rank_that_needs_it(name: str, hops: int):
    six, two = (
        CollectiveBounds(small(system__sips__count=ranks), [3], 1).of(case(name, ranks))
        for ranks in (6, 2)
    )
    assert [bound.path_ps - two[0].path_ps for bound in six] == [(hops - 1) * CROSSING_PS] * 6


@pytest.mark.parametrize("name", ["broadcast", "reduce"])
def test_no_route_is_hidden_from_a_rank_that_others_may_run_ahead_of(name: str):
    bounds = CollectiveBounds(small(system__sips__count=6), [3], 1)
    assert bounds.of(case(name, 6)) == bounds.of(case(name, 6), apart=True)
    paths = {bound.path_ps - bound.launch_ps for bound in bounds.of(case(name, 6))}
    # Less than the overheads of the ports that a byte passes on its way to another SIP.
    assert max(paths) < 6 * 100_000
    together, apart = (
        bounds.of(case("all_reduce", 6), apart=apart)[0].path_ps for apart in (False, True)
    )
    assert apart < together


def test_the_launch_is_that_of_the_closed_forms_and_only_the_first_pays_the_route_from_the_host():
    topology = variant(host__launch_overhead_ns=3_000)
    launch = LaunchTimes(TopologyFile(topology.values()), [(12, 0)])
    for iters in (1, 5):
        [bound, _] = CollectiveBounds(topology, [12], 8, iters).of(case("all_reduce", 2))
        once_ps = 3_000_000 + launch.to_io_ps + launch.answer_ps
        # A kernel on one element of four bytes is on one PE.
        assert bound.launch_ps == once_ps // iters + launch.stamp_ps + launch.report_ps


def test_memories_and_routers_have_their_least_latencies():
    def path_ps(**changes: object) -> int:
        topology = variant(**changes)
        return CollectiveBounds(topology, [12], 8).of(case("all_reduce", 2))[0].path_ps

    # An open row: 12.5 ns to the data and 20 of the controller, instead of 52; two accesses of a
    # byte to banks, of 32 GB/s, instead of 25.6.
    assert path_ps() - path_ps(hbm__model="banks") == 52_000 - 12_500 - 20_000 + 2 * (40 - 32)
    slow, fast = (
        path_ps(noc__flow_control="credits", noc__router_stages=stages) for stages in (4, 1)
    )
    # One stage at 2 GHz is 0.5 ns, four are more than the overhead of the calendars.
    assert slow == path_ps() > fast


def test_the_larger_part_is_the_bound():
    bounds = CollectiveBounds(small(system__sips__count=6), [3], 1)
    tiny, large = (bounds.of(case("all_reduce", 6, count))[0] for count in (1, 1 << 20))
    assert (tiny.time_ps, large.time_ps) == (tiny.path_ps, large.links_ps)
    assert tiny.launch_ps == large.launch_ps < tiny.time_ps


def test_a_mean_of_bounds_is_a_mean_of_its_parts():
    assert mean([TimeBound(1, 5, 9), TimeBound(3, 7, 0)]) == TimeBound(2, 6, 4)


def test_one_rank_alone_has_nothing_to_send():
    alone = CollectiveBounds(small(system__sips__count=1), [3], 1).of(case("all_reduce", 1, 8))
    assert [bound.time_ps for bound in alone] == [0]
