"""The vector engine: times and results of operations."""

from typing import Any

import numpy as np
import pytest

from kernbench.simulation import Simulation, simulate
from runtime import tl, torch
from runtime.core.trace import Operand, OpRecord
from runtime.language.chains.passes import passes
from tests.support.products import ONE_PE
from tests.support.topologies import variant_text

FILL, PORT_GBS = 4, 512


def launched(kernel: Any, *arrays: np.ndarray, **changes: Any) -> Simulation:
    def program(_rank: int) -> None:
        torch.launch("math", kernel, *(torch.from_numpy(array) for array in arrays))
        torch.ahbm.synchronize()

    return simulate(program, 1, topology=variant_text(**ONE_PE | changes))


def nothing(at: tl.Pointer) -> None:
    pass


def only(world: Simulation) -> OpRecord:
    [(_, record)] = world.of("pe_math")
    return record


@pytest.mark.parametrize(
    ("name", "cycles"),
    [
        ("add", FILL + 8),
        # One special-function unit for eight lanes.
        ("exp", FILL + 8 * 8),
        # A tree over 128 lanes has 7 levels.
        ("sum", FILL + 8 + 7),
        ("max", FILL + 8 + 7),
    ],
)
def test_an_operation_on_1000_elements_takes_fill_its_cycles_and_the_tree_of_a_reduction(
    name: str, cycles: int
) -> None:
    [pe] = launched(nothing, np.zeros(1, np.float32)).node.chips[0].pes
    [step] = passes(name)
    assert pe.math.cycles(step, 8) == cycles


@pytest.mark.parametrize(("clock_ghz", "busy_ps"), [(1.0, 68_000), (0.5, 136_000), (3.0, 22_667)])
def test_a_cycle_is_one_of_the_clock_of_the_engine(clock_ghz: float, busy_ps: int) -> None:
    def kernel(at: tl.Pointer) -> None:
        tl.exp(tl.load(at, 1000))

    [pe] = (
        launched(kernel, np.zeros(1000, np.float32), pe__math__clock_ghz=clock_ghz)
        .node.chips[0]
        .pes
    )
    # 4 cycles of fill and 8 for each of 8 vectors.
    assert pe.math.busy_ps == busy_ps


def test_fetch_computation_and_store_of_an_operation_overlap() -> None:
    def kernel(at: tl.Pointer) -> None:
        _ = tl.load(at, (8, 128)) + tl.load(at, (1, 128))

    world = launched(kernel, np.ones((8, 128), np.float32))
    record = only(world)
    loaded_ps = max(load.end_ps for _, load in world.of("pe_dma"))
    issue_ps, vector_ps = 2_000 + 1_000, 512 * 1000 // PORT_GBS
    # The first vector consists of a row and of the repeated operand, the others of a row.
    assert record.start_ps == loaded_ps + issue_ps + 2 * vector_ps
    # All stages take a nanosecond for a vector: the last of 8 leaves 7 after the first.
    assert record.end_ps == record.start_ps + (FILL + 1) * 1000 + 7 * 1000 + vector_ps


def test_a_reduction_stores_its_result_when_the_lanes_are_combined() -> None:
    def kernel(at: tl.Pointer) -> None:
        tl.sum(tl.load(at, (64, 128)), axis=1)

    record = only(launched(kernel, np.ones((64, 128), np.float32)))
    assert (record.shape, record.nbytes, record.axis) == ((64,), 256, 1)
    assert record.end_ps - record.start_ps == (FILL + 64 + 7) * 1000 + 256 * 1000 // PORT_GBS


def test_softmax_is_one_record_of_three_passes() -> None:
    def kernel(at: tl.Pointer) -> None:
        tl.softmax(tl.load(at, (64, 128)))

    world = launched(kernel, np.ones((64, 128), np.float32))
    record = only(world)
    largest, total, quotient = FILL + 64 + 7, FILL + 64 * 9 + 7 + 8, FILL + 64 * 9
    # Between passes, the first vector is fetched again; in the end, the last one is stored.
    assert record.end_ps - record.start_ps == (largest + total + quotient) * 1000 + 3 * 1000
    [pe] = world.node.chips[0].pes
    assert pe.fetch_store.fetch.server.nbytes == 3 * record.nbytes
    assert pe.fetch_store.store.server.nbytes == record.nbytes


def test_softmax_divides_once_for_each_vector_of_its_rows() -> None:
    def kernel(at: tl.Pointer) -> None:
        tl.softmax(tl.load(at, (4096, 2)))

    record = only(launched(kernel, np.ones((64, 128), np.float32)))
    # As many elements as in the test before, with 4,096 rows: 32 vectors of 128 reciprocals.
    largest, total, quotient = FILL + 64 + 7, FILL + 64 * 9 + 7 + 32 * 8, FILL + 64 * 9
    assert record.end_ps - record.start_ps == (largest + total + quotient) * 1000 + 3 * 1000


def test_a_product_stores_a_tile_while_a_long_operation_computes() -> None:
    def kernel(at: tl.Pointer) -> None:
        x = tl.load(at, (64, 128))
        pending = tl.composite("gemm", a=x[:32, :64], b=x[:64, :32])
        tl.exp(x)
        pending.wait()

    world = launched(kernel, np.ones((64, 128), np.float32))
    [stored] = [record for _, record in world.of("pe_fetch_store") if record.name == "store"]
    record = only(world)
    # The port is free between the vectors of the operation.
    assert stored.end_ps < record.end_ps - 400_000


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
        # A port without a limit, so that the engine never waits.
        launched(kernel, np.ones(1000, dtype), pe__fetch_store__bw_gbs=1e6)
        .node.chips[0]
        .pes[0]
        .math.busy_ps
        for dtype in (np.int32, np.int64, np.float64, np.uint8)
    ]
    assert busy == [(FILL + cycles) * 1000 for cycles in (8, 16, 16, 8)]
