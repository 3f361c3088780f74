"""The vector engine: times and results of operations."""

from typing import Any

import numpy as np
import pytest

from runtime import tl, torch
from runtime.core.trace import Operand, OpRecord
from sip_node.local_run import World, simulate
from tests.support.products import ONE_PE
from tests.support.topologies import variant_text

LANES, FILL, PORT_GBS = 128, 4, 512


def launched(kernel: Any, *arrays: np.ndarray, **changes: Any) -> World:
    def program(_rank: int) -> None:
        torch.launch("math", kernel, *(torch.from_numpy(array) for array in arrays))
        torch.ahbm.synchronize()

    return simulate(program, 1, topology=variant_text(**ONE_PE | changes))


def nothing(at: tl.Pointer) -> None:
    pass


def only(world: World) -> OpRecord:
    [(_, record)] = world.of("pe_math")
    return record


@pytest.mark.parametrize(
    ("name", "cycles"),
    [
        ("add", FILL + 8),
        ("exp", FILL + 8),
        # Maximum, exponential of the difference, sum, quotient.
        ("softmax", FILL + 4 * 8),
        # A tree over 128 lanes has 7 levels.
        ("sum", FILL + 8 + 7),
        ("max", FILL + 8 + 7),
    ],
)
@pytest.mark.parametrize("clock_ghz", [1.0, 0.5])
def test_an_operation_on_1000_elements_takes_fill_passes_and_the_tree_of_a_reduction(
    name: str, cycles: int, clock_ghz: float
) -> None:
    [pe] = (
        launched(nothing, np.zeros(1, np.float32), pe__math__clock_ghz=clock_ghz).node.chips[0].pes
    )
    assert pe.math.compute_ps(name, 1000) == cycles * 1000 / clock_ghz


def test_an_operation_fetches_its_operands_computes_and_stores_its_result() -> None:
    def kernel(at: tl.Pointer) -> None:
        _ = tl.load(at, (8, 128)) + tl.load(at, (1, 128))

    world = launched(kernel, np.ones((8, 128), np.float32))
    record = only(world)
    loaded_ps = max(load.end_ps for _, load in world.of("pe_dma"))
    issue_ps = 2_000 + 1_000
    fetch_ps, store_ps = (4096 + 512) * 1000 // PORT_GBS, 4096 * 1000 // PORT_GBS
    compute_ps = (FILL + 1024 // LANES) * 1000
    assert record.start_ps == loaded_ps + issue_ps + fetch_ps
    assert record.end_ps == record.start_ps + compute_ps + store_ps


def test_a_reduction_takes_time_for_its_inputs_and_stores_its_result() -> None:
    def kernel(at: tl.Pointer) -> None:
        tl.sum(tl.load(at, (64, 128)), axis=1)

    record = only(launched(kernel, np.ones((64, 128), np.float32)))
    assert (record.shape, record.nbytes, record.axis) == ((64,), 256, 1)
    assert record.end_ps - record.start_ps == (FILL + 64 + 7) * 1000 + 256 * 1000 // PORT_GBS


def test_a_result_is_in_tcm_when_the_operation_ends() -> None:
    def kernel(at: tl.Pointer) -> None:
        _ = tl.load(at, 16) * 3

    world = launched(kernel, np.arange(16, dtype=np.float32))
    record = only(world)
    [pe] = world.node.chips[0].pes
    content = pe.tcm.read(Operand(record.address, record.shape, record.dtype))
    assert np.frombuffer(content, np.float32).tolist() == [3 * i for i in range(16)]
    assert record.inputs[1] == 3


def test_an_element_of_8_bytes_takes_two_cycles_of_a_lane() -> None:
    def kernel(at: tl.Pointer) -> None:
        _ = tl.load(at, 1000) + 1

    busy = [
        launched(kernel, np.ones(1000, dtype)).node.chips[0].pes[0].math.busy_ps
        for dtype in (np.int32, np.int64, np.float64, np.uint8)
    ]
    assert busy == [(FILL + cycles) * 1000 for cycles in (8, 16, 16, 8)]
