"""Machines whose parts differ: times by formulas, and programs on what is not down."""

import numpy as np
import pytest

from kernbench.oracle.theory.paths.memory_access import MemoryAccess
from kernbench.oracle.theory.paths.routes import RouteEnd
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime import DPPolicy, tl, torch
from runtime.core.errors import ConfigError
from runtime.core.requests import PeDmaMsg
from runtime.device.launches.launch import launch_on
from runtime.device.rank.rank_state import running_rank
from runtime.language.value import Value
from runtime.torch import distributed as dist
from tests.support.topologies import variant_text
from tests.support.world import simulate

KIB = 1024
Override = dict[str, dict[str, float | bool]]


def store_ps(
    overrides: Override, source: tuple[int, int], target: tuple[int, int], size: int
) -> int:
    """The time in which the DMA of a PE writes to the slice of another PE."""

    def program(rank: int) -> int:
        state = running_rank()
        address = state.addresses.pe_hbm_addr(0, *target, 0)
        request = PeDmaMsg(*source, "write", address, size)
        return state.device.wait(state.device.submit([request], "a store")).pe_exec_ps

    world = simulate(program, 1, topology=variant_text(overrides=overrides), data=False)
    time_ps: int = world.returned[0]
    return time_ps


def bytes_ns(overrides: Override, source: tuple[int, int], target: tuple[int, int]) -> float:
    """The time of 64 KiB more, without latencies."""
    once, twice = (store_ps(overrides, source, target, size * 64 * KIB) for size in (1, 2))
    return (twice - once) / 1000


def test_bytes_pass_a_slow_link_at_its_bandwidth_and_others_at_theirs() -> None:
    slow: Override = {"sip0.cube6.ucie.W": {"bw_gbs": 16}}
    assert bytes_ns(slow, (5, 0), (6, 0)) == 64 * KIB / 16
    assert bytes_ns(slow, (6, 0), (7, 0)) == 64 * KIB / 128


def test_a_link_is_slow_in_one_direction_only() -> None:
    slow: Override = {"cube5.ucie.E->cube6.ucie.W": {"bw_gbs": 16}}
    assert bytes_ns(slow, (5, 0), (6, 0)) == 64 * KIB / 16
    assert bytes_ns(slow, (6, 0), (5, 0)) == 64 * KIB / 128


def test_a_slow_slice_serves_at_the_rate_of_its_channels() -> None:
    slow: Override = {"cube0.pe1.hbm_ctrl": {"pc_bw_gbs": 4, "efficiency": 0.5}}
    # Eight channels of 4 GB/s at one half.
    assert bytes_ns(slow, (0, 0), (0, 1)) == 64 * KIB / 16


def test_a_detour_takes_the_crossings_and_the_routers_that_it_adds() -> None:
    down: Override = {"cube6.ucie.W": {"down": True}}
    ends = RouteEnd("pe", 0, 5, 0), RouteEnd("hbm", 0, 6, 0)
    access = MemoryAccess(TopologyFile.of(variant_text(overrides=down)))
    assert store_ps(down, (5, 0), (6, 0), 4 * KIB) == access.write(*ends, 4 * KIB).total_ps
    # Up to the root, cube 0, and down: three crossings of two ports of 8 ns instead of one, in each
    # direction.
    ports = [hop for hop in access.plan.route(*ends) if ".ucie." in hop.node]
    assert [hop.node.partition(".")[0] for hop in ports] == [
        *("cube5", "cube1", "cube1", "cube2", "cube2", "cube6"),
    ]


def test_a_product_step_takes_the_cycles_of_the_pe_that_computes_it() -> None:
    def kernel() -> None:
        tl.dot(zeros(32, 64), zeros(64, 32))

    def program(_rank: int) -> None:
        launch_on("step", kernel, (), [], [(0, 0), (3, 1)])

    text = variant_text(overrides={"cube3.pe*": {"clock_ghz": 0.5}})
    steps = simulate(program, 1, topology=text, data=False).of("pe_gemm")
    # 32 x 64 x 32 products by 4,096 in a cycle.
    assert {(each.cube, each.end_ps - each.start_ps) for _, each in steps} == {
        (0, 16_000),
        (3, 32_000),
    }


def zeros(rows: int, columns: int) -> Value:
    return Value((rows, columns), tl.float16, np.zeros((rows, columns), np.float16))


HARVESTED = variant_text(overrides={"cube1": {"down": True}, "cube0.pe3": {"down": True}})


def test_tensors_are_dealt_over_cubes_and_pes_that_are_not_down() -> None:
    def program(_rank: int) -> list[tuple[int, int]]:
        numbers = np.arange(2 * 7 * 4096, dtype=np.float32)
        x = torch.from_numpy(numbers, dp=DPPolicy(cube="row_wise", pe="row_wise", num_cubes=2))
        assert (x.numpy() == numbers).all()
        return [(shard.spec.cube, shard.spec.pe) for shard in x.shards]

    [pes] = simulate(program, 1, topology=HARVESTED).returned.values()
    # Cube 0 has seven PEs left, so cube 2 gives seven as well.
    assert pes == [(0, pe) for pe in (0, 1, 2, 4, 5, 6, 7)] + [(2, pe) for pe in range(7)]


def test_a_grid_is_dealt_over_the_pes_that_are_left() -> None:
    def double(x: tl.Pointer, count: int) -> None:
        block = x + tl.program_id(0) * count
        tl.store(block, tl.load(block, count) * 2)

    def program(_rank: int) -> bool:
        x = torch.ones(64 * 1024)
        torch.launch("double", double, x, 1024, grid=(64,))
        properties = torch.ahbm.get_device_properties()
        assert (properties.cubes, properties.pes_per_cube) == (15, 7)
        return bool((x.numpy() == 2).all())

    assert simulate(program, 1, topology=HARVESTED).returned == {0: True}


@pytest.mark.parametrize(("pe", "part"), [((1, 0), r"sip0\.cube1"), ((0, 3), r"sip0\.cube0\.pe3")])
def test_a_launch_on_what_is_down_names_it(pe: tuple[int, int], part: str) -> None:
    def program(_rank: int) -> None:
        with pytest.raises(ValueError, match=rf"launch of 'x' needs {part}, which is down"):
            launch_on("x", print, (), [], [pe])
        with pytest.raises(ValueError, match=r"needs cube1, which is down"):
            torch.zeros(8, dp=DPPolicy(cubes=(1,), num_pes=1))

    simulate(program, 1, topology=HARVESTED)


def test_collectives_of_one_pe_of_each_sip_run_without_the_first_cube() -> None:
    def program(rank: int) -> float:
        dist.init_process_group("ahbm", algorithm="ring")
        x = torch.full((1000,), float(rank + 1))
        dist.all_reduce(x)
        return float(x.numpy().sum())

    text = variant_text(overrides={"cube0": {"down": True}, "sip1.cube2.pe0": {"down": True}})
    assert simulate(program, 2, topology=text).returned == {0: 3000, 1: 3000}


def test_a_collective_that_needs_a_cube_that_is_down_names_it() -> None:
    def program(_rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="intercube")

    with pytest.raises(ConfigError, match=r"'cube_leaders' needs sip0\.cube1, which is down"):
        simulate(program, 2, topology=HARVESTED)
