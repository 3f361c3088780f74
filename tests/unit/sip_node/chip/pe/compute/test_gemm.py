"""The matrix engine: the duration of a step, and the causes of idle time before it."""

from typing import Any

import numpy as np
import pytest

from kernbench.simulation import simulate
from runtime import tl, torch
from runtime.core.dtypes import float32, from_numpy
from runtime.language.gemm import Gemm, evaluate
from runtime.language.value import Value
from runtime.model.placement import ONE_PE
from runtime.model.tiles import Tile
from runtime.model.topology import parse_topology
from sip_node.chip.pe.compute.gemm import stall_before
from sip_node.chip.pe.compute.tile_token import TileToken
from tests.support.products import ONE_PE as ONE_PE_CHIP
from tests.support.products import Product, measure
from tests.support.topologies import variant_text

FULL = Tile((0, 32), (0, 64), (0, 32), first=True, last=True)
CORNER = Tile((32, 33), (64, 67), (96, 98), first=False, last=True)
INNER = Tile((0, 32), (0, 64), (0, 32), first=False, last=False)


def step_ps(tile: Tile, **gemm: Any) -> int:
    numbers = {"model": "macs", "clock_ghz": 1.0, "macs_per_cycle": 4096, "rows": 32, "cols": 32}
    [pe] = measure(Product(1, 1, 1), pe__gemm=numbers | gemm).world.node.chips[0].pes
    return pe.gemm.step_ps(tile)


@pytest.mark.parametrize("tile", [FULL, CORNER, INNER])
def test_macs_takes_as_long_for_any_tile_as_for_a_full_one(tile: Tile) -> None:
    # 32 * 64 * 32 multiplications at 4096 a cycle.
    assert step_ps(tile) == 16_000


def test_a_cycle_that_is_not_full_is_a_cycle() -> None:
    # 65,536 / 1000 = 65.5 cycles at 3 GHz.
    assert step_ps(FULL, macs_per_cycle=1000, clock_ghz=3.0) == 66 * 1000 // 3


@pytest.mark.parametrize(
    ("tile", "cycles"),
    [(INNER, 64), (FULL, 64 + 32 + 32 - 2), (CORNER, 3 + 32 + 32 - 2)],
)
def test_systolic_os_takes_the_depth_and_at_the_last_step_the_skew(tile: Tile, cycles: int) -> None:
    assert step_ps(tile, model="systolic_os") == cycles * 1000


@pytest.mark.parametrize(("tile", "passes"), [(FULL, 4 * 2), (CORNER, 1)])
def test_systolic_os_goes_over_a_tile_larger_than_its_array_in_passes(
    tile: Tile, passes: int
) -> None:
    depth = tile.size.k
    assert (
        step_ps(tile, model="systolic_os", rows=8, cols=16) == passes * (depth + 8 + 16 - 2) * 1000
    )


def token(**times_ps: int) -> TileToken:
    """A token with the times that decide about stalls; the engine is free from 100 ps on."""
    times = {"submitted": 0, "open": 100, "ready": 0, "turn": 100, "fetch": 100, "fetched": 100}
    made = TileToken()
    for name, time_ps in (times | times_ps).items():
        setattr(made, f"{name}_ps", time_ps)
    return made


@pytest.mark.parametrize(
    ("times", "stall"),
    [
        # Operands 30 ps late, fetched in 20 ps.
        ({"ready": 130, "turn": 130, "fetch": 130, "fetched": 150}, (30, 20, 0)),
        # Operands in time, fetched in 50 ps.
        ({"fetched": 150}, (0, 50, 0)),
        # In registers before the engine was free: only an accumulator can be missing.
        ({"open": 20, "turn": 20, "fetch": 20, "fetched": 40}, (0, 0, 50)),
        # The fetch itself waited 40 ps for an accumulator.
        ({"fetch": 140, "fetched": 150}, (0, 10, 40)),
        # Operands late before the product was submitted are not late.
        (
            {"submitted": 110, "ready": 120, "turn": 120, "fetch": 120, "fetched": 150},
            (10, 30, 0),
        ),
    ],
)
def test_idle_time_is_attributed_to_the_latest_cause_first(
    times: dict[str, int], stall: tuple[int, int, int]
) -> None:
    late = token(**times)
    assert stall_before(late, max(100, late.submitted_ps), 150) == stall


@pytest.mark.parametrize("stage", [True, False])
@pytest.mark.parametrize("start", [True, False])
def test_sums_that_become_infinite_have_the_bits_of_the_reference(stage: bool, start: bool) -> None:
    # The sum is finite after the first step; the second and the last have infinities.
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((3, 200), (200, 5)))
    acc = rng.standard_normal((3, 5)).astype(np.float32)
    a[1, 70], b[199, 2] = np.inf, -np.inf

    def kernel(left: Any, right: Any, sums: Any, out: Any) -> None:
        operand = tl.load if stage else tl.ref
        first = tl.load(sums, (3, 5)) if start else None
        shapes = (3, 200), (200, 5)
        x, y = operand(left, shapes[0]), operand(right, shapes[1])
        tl.wait(tl.composite("gemm", x, y, tl.ref(out, (3, 5)), acc=first))

    def main(rank: int) -> bytes:
        torch.ahbm.set_device(rank)
        tensors = [torch.from_numpy(each, dp=ONE_PE) for each in (a, b, acc)]
        out = torch.zeros(3, 5, dtype=torch.float32, dp=ONE_PE)
        torch.launch("gemm", kernel, *tensors, out)
        return out.numpy().tobytes()

    world = simulate(main, 1, topology=variant_text(**ONE_PE_CHIP))
    operands = (Value(each.shape, from_numpy(each.dtype), each) for each in (a, b))
    first = Value((3, 5), float32, acc) if start else None
    gemm = Gemm(*operands, None, float32, acc=first)
    expected = evaluate(gemm, a, b, parse_topology(variant_text(), "topology", 1).tile)
    assert np.isnan(expected).any() or np.isinf(expected).any()
    assert world.returned[0] == expected.tobytes()
