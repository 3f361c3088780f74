"""Objects left to Python's memory management by a run: no cycles, no arrays without data."""

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from kernbench.simulation import Simulation, simulate
from runtime import DPPolicy, tl, torch
from tests.support.own_garbage import only_own_garbage
from tests.support.topologies import variant_text

dist = torch.distributed
SMALL = variant_text(sip__cube_mesh={"w": 1, "h": 1}, cube__pe_layout__pe_per_corner=1)


def scale(x: tl.Pointer, numel: int) -> None:
    own = x + tl.program_id(0) * numel
    with tl.scratch():
        tl.store(own, tl.load(own, (numel,)) * 2.0)


def program(calls: int) -> Callable[[int], None]:
    def main(_: int) -> None:
        dist.init_process_group("ahbm")
        rows = DPPolicy(pe="row_wise", num_cubes=1)
        x = torch.zeros((4096,), dtype=torch.float16, dp=rows)
        a = torch.zeros((64, 64), dtype=torch.float16)
        for _ in range(calls):
            dist.all_reduce(x)
            torch.launch("scale", scale, x, 1024)
            a = a @ a
            x.numpy()
        torch.ahbm.synchronize()

    return main


def garbage_of(calls: int) -> tuple[int, Simulation]:
    """The number of objects that only the collector finds after a run with this number of calls."""
    with only_own_garbage():
        world = simulate(program(calls), 2, topology=SMALL)
        return gc.collect(), world


@pytest.mark.slow
def test_no_command_kernel_or_slot_leaves_a_reference_cycle() -> None:
    # In a run, nothing collects cycles: what is in one stays for as long as the run.
    garbage_of(1)
    (few, _), (many, world) = garbage_of(1), garbage_of(4)
    assert few == many
    assert len(world.of("pe_dma", "ipcq_send")) > 4


def test_a_run_without_data_makes_no_arrays_of_the_size_of_a_tensor() -> None:
    numel = 1 << 22

    def main(_: int) -> int:
        torch.zeros((8,), dtype=torch.float32)
        torch.ahbm.synchronize()
        tracemalloc.start()
        torch.zeros((numel,), dtype=torch.float64, dp=DPPolicy(num_cubes=1, num_pes=1))
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak_bytes

    assert simulate(main, 1, topology=SMALL, data=False).returned[0] < numel
