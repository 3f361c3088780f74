"""`zeros`, `ones` and `full` are written by the PEs that hold the tensor, at the rate of its
memories.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench.simulation import Simulation, simulate
from runtime import DPPolicy, torch
from tests.support.topologies import variant, variant_text

TOPOLOGY = variant_text(sip__cube_mesh={"w": 2, "h": 2}, cube__pe_layout__pe_per_corner=1)
ON_ONE = DPPolicy(num_cubes=1, num_pes=1)
PLACEMENTS = {
    "default": None,
    "rows": DPPolicy(cube="row_wise", pe="row_wise"),
    "columns": DPPolicy(cube="row_wise", pe="column_wise", num_cubes=2, num_pes=2),
    "replicas": DPPolicy(cube="replicate", pe="replicate", num_cubes=2, num_pes=3),
    "tiles": torch.tiled_row_major(3, 5),
}


def run(program: Callable[[], Any], **options: Any) -> Simulation:
    return simulate(lambda _rank: program(), 1, topology=TOPOLOGY, **options)


@pytest.mark.parametrize("dp", PLACEMENTS.values(), ids=PLACEMENTS)
def test_every_element_of_every_shard_is_filled(dp: Any) -> None:
    def program() -> list[np.ndarray]:
        made = [torch.empty(16, 16, dp=dp), torch.full((16, 16), 2.5, dp=dp)]
        made += [torch.zeros(16, 16, dp=dp), torch.ones(16, 16, dp=dp), torch.zeros_like(made[1])]
        return [part for each in made[1:] for _, _, part in each.copies()]

    world = run(program, verify=True)
    parts = world.returned[0]
    quarter = len(parts) // 4
    for number, value in enumerate((2.5, 0, 1, 0)):
        for part in parts[number * quarter : (number + 1) * quarter]:
            np.testing.assert_array_equal(part, value)
    # No element passes PCIe.
    assert not world.of("host", "MemoryWriteMsg")


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        *((dtype, 3) for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.int8)),
        *((torch.float32, value) for value in (0.1, -0.0, float("inf"), float("nan"))),
        *((torch.int64, value) for value in (-1, 2**53 + 1, 2**63 - 1, -(2**63), -(2**62) - 1)),
        *((torch.int32, value) for value in (2**31 - 1, -(2**31))),
        *((torch.uint8, value) for value in (0, 255)),
        *((torch.bool, value) for value in (True, False)),
        *((torch.float8_e4m3fn, value) for value in (0.3, -448.0)),
    ],
)
def test_a_value_has_the_bits_that_numpy_gives_it(dtype: Any, value: float) -> None:
    def program() -> tuple[bytes, bytes]:
        made = torch.full((1001,), value, dtype=dtype)
        return made.numpy().tobytes(), np.full(1001, value, dtype.numpy).tobytes()

    world = run(program, verify=True)
    made, expected = world.returned[0]
    assert made == expected
    assert not world.of("host", "MemoryWriteMsg")


@pytest.mark.parametrize("data", [True, False])
def test_a_fill_takes_the_time_of_its_memory_and_not_of_pcie(data: bool) -> None:
    """Two fills of one PE differ by their bytes at the rate of a slice."""

    def program() -> list[int]:
        found: list[int] = []
        for nbytes in (1 << 20, 3 << 20):
            filled = torch.zeros(nbytes, dtype=torch.int8, dp=ON_ONE)
            torch.ahbm.synchronize()
            start_ps = torch.ahbm.elapsed_ps()
            filled.fill_(1)
            torch.ahbm.synchronize()
            found.append(torch.ahbm.elapsed_ps() - start_ps)
        return found

    short_ps, long_ps = run(program, data=data).returned[0]
    hbm = variant().hbm
    gbs = hbm.num_pcs * hbm.pc_bw_gbs * variant().cube.hbm_ctrl.efficiency
    # A block of a 128th is made before it is stored.
    assert long_ps - short_ps == pytest.approx(2 * (1 << 20) / gbs * 1000, rel=0.03)


def test_a_fill_takes_the_same_time_with_and_without_data() -> None:
    def program() -> int:
        torch.full((1000, 7), 3.0)
        torch.ahbm.synchronize()
        return torch.ahbm.elapsed_ps()

    assert run(program).time_ps == run(program, data=False).time_ps > 0


def test_a_fill_is_in_the_order_of_the_commands_that_use_its_tensor() -> None:
    def program() -> list[float]:
        x = torch.zeros(64)
        side = torch.ahbm.Stream()
        x += 1
        with torch.ahbm.stream(side):
            x.fill_(7)
        x += 1
        return x.numpy().tolist()

    assert run(program, verify=True).returned[0] == [8.0] * 64


def test_what_is_empty_takes_no_time() -> None:
    def program() -> None:
        torch.empty(64)
        torch.zeros(0)

    assert run(program).time_ps == 0
