"""The form of all-reduces over a tree of cubes and PEs, by hand."""

import pytest

from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.fidelity.theory.tree_all_reduce import TreeAllReduceTimes
from tests.support.topologies import default_text

SHIPPED = TopologyFile.of(default_text())
ONE_CUBE = SHIPPED.with_values({"sip.cube_mesh": {"w": 1, "h": 1}})
N = 1 << 20


@pytest.mark.parametrize(
    ("pes", "sips", "passes"),
    [
        # Own piece in, result out, two children up and down, and 2(p-1)/p n out and in.
        (1, 2, 2 + 4 + 2),
        (1, 4, 2 + 4 + 3),
        # Without a ring, a position above two children and below one parent.
        (1, 1, 2 + 4 + 2),
        # Two cubes and two PEs below the root.
        (8, 2, 2 + 8 + 2),
    ],
)
def test_the_port_of_the_tcm_serves_every_byte_that_comes_and_goes(
    pes: int, sips: int, passes: int
) -> None:
    busiest = TreeAllReduceTimes(SHIPPED, pes, 2048).busiest(sips, N)
    assert busiest.resource == "port of the TCM"
    assert busiest.time_ps == pytest.approx(passes * N / 0.512)


@pytest.mark.parametrize(
    ("key", "gbs", "resource", "passes"),
    [
        # Two children and the ring of two.
        ("pe.to_router_bw_gbs", 16, "link of the PE", 3),
        # Own piece and those of two children, and in half of the elements a piece of the ring.
        ("pe.fetch_store.bw_gbs", 16, "fetch port of the vector engine", 3.5),
        ("ucie.bw_gbs", 16, "link between cubes", 1),
    ],
)
def test_a_slow_resource_limits_the_form(key: str, gbs: int, resource: str, passes: float) -> None:
    busiest = TreeAllReduceTimes(SHIPPED.with_values({key: gbs}), 1, 2048).busiest(2, N)
    assert busiest.resource == resource
    assert busiest.time_ps == pytest.approx(passes * N / gbs * 1000)


def test_additions_limit_the_form_where_the_engine_is_slow() -> None:
    slow = SHIPPED.with_values({"pe.math.clock_ghz": 0.05})
    busiest = TreeAllReduceTimes(slow, 1, 2048).busiest(2, N)
    assert busiest.resource == "vector engine"
    # 2.5 additions of each element of four bytes, 128 in 20 ns.
    assert busiest.time_ps == pytest.approx(2.5 * N / 4 / 128 * 20_000)


def test_one_cube_with_one_pe_has_the_form_of_a_ring_with_an_idle_engine() -> None:
    times, sips = TreeAllReduceTimes(ONE_CUBE, 1, 2048), 4
    alpha_ps = KernelCosts(ONE_CUBE, 2048).alpha_ps(KernelCosts(ONE_CUBE, 2048).to_sip())
    # 3/2 n at 128 GB/s.
    expected_ps = 6 * alpha_ps + 1.5 * N / 0.128
    assert times.form_ps(sips, N) == pytest.approx(expected_ps)


def test_the_path_leads_from_the_farthest_cube_to_the_last_one_and_back() -> None:
    times, costs = TreeAllReduceTimes(SHIPPED, 1, 2048), KernelCosts(SHIPPED, 2048)
    # Three cubes along the row, three along the column; 8 KiB at 128 GB/s.
    east = [costs.alpha_ps(costs.to_cube(*ends)) for ends in ((0, 1), (1, 0))]
    south = [costs.alpha_ps(costs.to_cube(*ends)) for ends in ((3, 7), (7, 3))]
    assert times.path_ps(8192) == pytest.approx(3 * (sum(east) + sum(south)) + 12 * 64_000)
    # PE 7 is three links below PE 0.
    assert TreeAllReduceTimes(SHIPPED, 8, 2048).path_ps(0) > times.path_ps(0)
