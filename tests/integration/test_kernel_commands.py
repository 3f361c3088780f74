"""Effects of the commands of a kernel: addresses in TCM, bytes in memories, records of the log."""

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coordinator.verify.check import verify
from runtime import DPPolicy, tl, torch
from runtime.core.errors import PageFaultError
from runtime.core.requests import MemoryReadMsg, MemoryWriteMsg, PeDmaMsg
from runtime.core.trace import Operand, OpRecord
from runtime.device.launches.launch import launch_on
from runtime.device.rank.rank_state import running_rank
from runtime.language.value import Value
from runtime.model.addresses import AddressMap, PhysAddr
from runtime.model.allocation import kernel_scratch_offset
from runtime.model.topology import parse_topology
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

TEXT = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
    pe__tcm__kernel_scratch_mb=1,
)
"""One cube with two PEs."""
TOPOLOGY = parse_topology(TEXT, "topology.yaml", 1)
ADDRESSES = AddressMap(TOPOLOGY)
SCRATCH = ADDRESSES.pe_tcm_addr(0, 0, 0, kernel_scratch_offset(TOPOLOGY))
TWO_SHARDS = DPPolicy(cube="row_wise", pe="row_wise")
ONE_SHARD = DPPolicy(num_cubes=1, num_pes=1)


def run(
    kernel: Callable[..., Any],
    elements: np.ndarray,
    policy: DPPolicy = ONE_SHARD,
    *,
    data: bool = True,
    verified: bool = True,
) -> tuple[Simulation, np.ndarray]:
    """The tensor after `kernel(pointer)` on PE 0; the op log must replay to the same memories."""

    def program(rank: int) -> np.ndarray:
        tensor = torch.from_numpy(elements, dp=policy)
        launch_on(
            "command", kernel, (tl.Pointer(tensor.address, tensor.dtype),), [tensor], [(0, 0)]
        )
        torch.ahbm.synchronize()
        return tensor.numpy()

    world = simulate(program, 1, topology=TEXT, data=data, verify=data)
    if data and verified:
        verdict = verify(world.records, world.written, world.contents, ADDRESSES)
        assert verdict.passed, verdict.problems
    return world, world.returned[0]


def only(world: Simulation, engine: str, name: str) -> OpRecord:
    [(_, record)] = world.of(engine, name)
    return record


def checksum(array: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(array).tobytes())


def matrix(rows: int, columns: int) -> np.ndarray:
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)


def test_values_are_consecutive_in_the_scratch_and_aligned_to_their_elements() -> None:
    values: list[Value] = []

    def kernel(at: tl.Pointer) -> None:
        values.extend([tl.zeros(3, tl.int8), tl.zeros(1, tl.float16), tl.zeros((2, 2), tl.float32)])
        with tl.scratch():
            values.append(tl.zeros(5, tl.int32))
        values.append(tl.load(at, 2))

    run(kernel, matrix(1, 2))
    assert [value.address - SCRATCH for value in values] == [0, 4, 8, 24, 24]
    where = PhysAddr.decode(values[0].address, ADDRESSES)
    assert (where.resource, where.pe) == ("tcm", 0)


def test_a_view_has_the_address_of_its_first_element() -> None:
    def kernel(at: tl.Pointer) -> None:
        whole = tl.load(at, (6, 8))
        part = whole[2:4, 3:5]
        assert part.address == whole.address + (2 * 8 + 3) * 4
        assert (part + 1).address > whole.address

    world, _ = run(kernel, matrix(6, 8))
    added = only(world, "pe_math", "add")
    assert added.inputs == (Operand(SCRATCH + 76, (2, 2), "f32", (8, 1)), 1.0)
    assert (added.address, added.shape, added.dtype) == (SCRATCH + 192, (2, 2), "f32")
    assert added.checksum == checksum(matrix(6, 8)[2:4, 3:5] + 1)


def test_a_strided_load_and_store_move_a_part_of_a_matrix() -> None:
    def kernel(at: tl.Pointer) -> None:
        block = tl.load(at + 2 * 16 + 4, (3, 5), strides=(16, 1))
        tl.store(at + 6 * 16 + 1, block * 10, strides=(16, 1))

    world, result = run(kernel, matrix(10, 16))
    expected = matrix(10, 16)
    expected[6:9, 1:6] = expected[2:5, 4:9] * 10
    assert np.array_equal(result, expected)
    load, store = only(world, "pe_dma", "load"), only(world, "pe_dma", "store")
    base = load.inputs[0].address - (2 * 16 + 4) * 4
    assert load.inputs == (Operand(base + 144, (3, 5), "f32", (16, 1)),)
    assert (load.address, load.shape, load.strides, load.nbytes) == (SCRATCH, (3, 5), (), 60)
    assert store.inputs == (Operand(SCRATCH + 60, (3, 5), "f32"),)
    assert (store.address, store.shape, store.strides, store.nbytes) == (
        base + 388,
        (3, 5),
        (16, 1),
        60,
    )
    assert store.checksum == checksum(expected[6:9, 1:6])


def test_a_load_across_shards_is_one_record_a_piece() -> None:
    def kernel(at: tl.Pointer) -> None:
        tl.store(at + 3, tl.load(at + 2, 5) + 0.5)

    world, result = run(kernel, np.arange(8, dtype=np.float32), TWO_SHARDS)
    expected = np.arange(8, dtype=np.float32)
    expected[3:8] = expected[2:7] + 0.5
    assert np.array_equal(result, expected)
    loads = sorted(
        (record for _, record in world.of("pe_dma", "load")), key=lambda record: record.address
    )
    assert [(record.address - SCRATCH, record.nbytes) for record in loads] == [(0, 8), (8, 12)]
    places = [PhysAddr.decode(record.inputs[0].address, ADDRESSES).pe for record in loads]
    assert places == [0, 1]


def test_a_strided_block_across_shards_is_split_by_rows() -> None:
    def kernel(at: tl.Pointer) -> None:
        # Rows of 6 elements in shards of 24 elements; the block has two rows in each shard.
        tl.store(at + 2 * 6 + 1, tl.load(at + 2 * 6, (4, 3), strides=(6, 1)), strides=(6, 1))

    world, result = run(kernel, np.arange(48, dtype=np.float32), TWO_SHARDS)
    expected = matrix(8, 6)
    expected[2:6, 1:4] = matrix(8, 6)[2:6, 0:3]
    assert np.array_equal(result.reshape(8, 6), expected)
    assert [
        (record.shape, record.inputs[0].strides) for _, record in world.of("pe_dma", "load")
    ] == [((6,), (6, 1))] * 2


def test_a_part_of_three_axes_and_a_transposed_matrix_are_one_request_each() -> None:
    cube = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)

    def kernel(at: tl.Pointer) -> None:
        part = tl.load(at + 30 + 6 + 2, (2, 3, 4), strides=(30, 6, 1))
        turned = tl.load(at + 90, (6, 5), strides=(1, 6))
        tl.store(at, turned * 2, strides=(1, 6))
        tl.store(at + 30 + 6 + 1, part, strides=(30, 6, 1))

    world, result = run(kernel, cube.copy())
    expected = cube.copy()
    expected[0] = 2 * cube[3]
    expected[1:3, 1:4, 1:5] = cube[1:3, 1:4, 2:6]
    assert np.array_equal(result.reshape(cube.shape), expected)
    assert len(list(world.of("pe_dma"))) == 4


@pytest.mark.parametrize("strides", [(12, 4, 1), (1, 6)], ids=["planes", "transposed"])
def test_a_block_with_two_pitches_across_shards_is_divided_into_requests_for_planes(
    strides: tuple[int, ...],
) -> None:
    shape = (4, 2, 3) if len(strides) == 3 else (6, 8)

    def kernel(at: tl.Pointer) -> None:
        tl.store(at, tl.load(at, shape, strides=strides) + 1, strides=strides)

    before = np.arange(48, dtype=np.float32)
    world, result = run(kernel, before, TWO_SHARDS)
    expected = before.copy()
    np.ndarray(shape, np.float32, expected, strides=[4 * stride for stride in strides])[:] += 1
    assert np.array_equal(result, expected)
    requests = len(list(world.of("pe_dma", "load")))
    assert requests == (4 if len(strides) == 3 else 12)


def test_a_row_across_shards_is_divided_where_the_shard_ends() -> None:
    def kernel(at: tl.Pointer) -> None:
        # Rows of 5 elements with a pitch of 7 in shards of 16: the third row starts at 14.
        tl.store(at, tl.load(at, (4, 5), strides=(7, 1)))

    _, result = run(kernel, np.arange(32, dtype=np.float32), TWO_SHARDS)
    expected = np.arange(32, dtype=np.float32)
    expected[:20] = np.concatenate([np.arange(7 * row, 7 * row + 5) for row in range(4)])
    assert np.array_equal(result, expected)


def test_a_view_with_gaps_is_stored_across_shards() -> None:
    def kernel(at: tl.Pointer) -> None:
        tl.store(at + 5, tl.load(at, (4, 4))[:, 1:3])

    _, result = run(kernel, np.arange(16, dtype=np.float32), TWO_SHARDS)
    expected = np.arange(16, dtype=np.float32)
    expected[5:13] = matrix(4, 4)[:, 1:3].reshape(-1)
    assert np.array_equal(result, expected)


def test_a_row_that_is_not_mapped_is_a_page_fault_of_that_row() -> None:
    with pytest.raises(
        PageFaultError, match="20 bytes at virtual address 0x100000060 are not mapped"
    ):
        run(lambda at: tl.load(at, (4, 5), strides=(8, 1)), matrix(3, 8))


def test_every_operation_of_the_vector_engine_records_its_inputs_and_its_result() -> None:
    def kernel(at: tl.Pointer) -> None:
        x = tl.load(at, (4, 6))
        y = tl.softmax(x, axis=0)
        total = tl.sum(y * 2, axis=1, keep_dims=True)
        tl.store(at, tl.cat([(x - total).to(tl.float32), tl.zeros((2, 2), tl.float32)])[:24])

    elements = matrix(4, 6) / 10
    world, _ = run(kernel, elements)
    records = {record.name: record for _, record in world.of("pe_math")}
    assert list(records) == ["softmax", "mul", "sum", "sub", "cast", "full", "cat"]
    x = Operand(SCRATCH, (4, 6), "f32")
    assert records["softmax"].inputs == (x,)
    assert records["softmax"].axis == 0
    assert records["mul"].inputs == (Operand(SCRATCH + 96, (4, 6), "f32"), 2.0)
    assert (records["sum"].axis, records["sum"].shape) == (1, (4, 1))
    assert records["sub"].inputs == (x, Operand(records["sum"].address, (4, 1), "f32"))
    assert records["full"].inputs == (0.0,)
    assert len(records["cat"].inputs) == 2


def test_a_product_of_values_leaves_its_result_in_the_scratch() -> None:
    def kernel(at: tl.Pointer) -> None:
        a = tl.load(at, (40, 70))
        product = tl.dot(a, a.T)
        assert product.address == SCRATCH + 2 * 40 * 70 * 4
        tl.store(at, product)

    elements = matrix(40, 70) % 7
    _, result = run(kernel, elements)
    # Whole numbers this small are exact in float32.
    assert np.array_equal(result.reshape(-1)[:1600], (elements @ elements.T).reshape(-1))


def test_a_composite_streams_from_and_to_memory() -> None:
    def kernel(at: tl.Pointer) -> None:
        pending = tl.composite(
            "gemm", tl.ref(at, (48, 64)), tl.ref(at, (64, 48)), tl.ref(at + 3072, (48, 48))
        )
        assert tl.wait(pending) is None

    elements = np.zeros(3072 + 48 * 48, np.float32)
    elements[:3072] = np.arange(3072) % 5
    _, result = run(kernel, elements)
    assert np.array_equal(
        result[3072:].reshape(48, 48),
        elements[:3072].reshape(48, 64) @ elements[:3072].reshape(64, 48),
    )


@pytest.mark.parametrize("name", ["a", "b", "out"])
def test_a_matrix_that_is_not_mapped_is_a_page_fault_on_the_line_of_the_composite(
    name: str,
) -> None:
    def kernel(at: tl.Pointer) -> None:
        refs = {"a": tl.ref(at, (8, 8)), "b": tl.ref(at, (8, 8)), "out": tl.ref(at, (8, 8))}
        refs[name] = tl.ref(at + 1, (8, 8))
        tl.composite("gemm", refs["a"], refs["b"], refs["out"])

    with pytest.raises(PageFaultError) as raised:
        run(kernel, matrix(8, 8))
    assert raised.value.line.endswith(
        f"test_kernel_commands.py:{kernel.__code__.co_firstlineno + 3}"
    )


def test_a_run_without_data_has_the_same_records_except_for_checksums() -> None:
    def kernel(at: tl.Pointer) -> None:
        x = tl.load(at, (16, 32), strides=(32, 1))
        pending = tl.composite("gemm", tl.ref(at, (16, 32)), x.T)
        largest = tl.max(x, axis=1)
        tl.wait(pending)
        tl.store(at, largest)

    def timed(*, data: bool) -> list[tuple[object, ...]]:
        world, _ = run(kernel, matrix(16, 32), data=data)
        return [
            (
                record.engine,
                record.name,
                record.start_ps,
                record.end_ps,
                record.inputs,
                record.address,
                record.shape,
            )
            for record in world.records[0]
        ]

    assert timed(data=True) == timed(data=False)


def test_the_host_records_its_writes_and_reads() -> None:
    content = bytes(range(200))

    def program(rank: int) -> None:
        device, address = running_rank().device, ADDRESSES.pe_hbm_addr(0, 0, 1, 4096)
        for request in (
            MemoryWriteMsg(address, 200, content),
            PeDmaMsg(0, 0, "read", address + 50, 100, 64),
            PeDmaMsg(0, 0, "write", address + 1000, 100, 64),
            MemoryReadMsg(address + 1000, 100),
        ):
            device.wait(device.submit([request], "request"))

    world = simulate(program, 1, topology=TEXT, verify=True)
    verdict = verify(world.records, world.written, world.contents, ADDRESSES)
    assert verdict.passed, verdict.problems
    address, tcm = ADDRESSES.pe_hbm_addr(0, 0, 1, 4096), ADDRESSES.pe_tcm_addr(0, 0, 0, 64)
    write, read = only(world, "host", "MemoryWriteMsg"), only(world, "host", "MemoryReadMsg")
    assert (write.address, write.nbytes, write.shape, write.dtype) == (address, 200, (200,), "u8")
    assert (write.inputs, write.checksum) == ((), zlib.crc32(content))
    assert read.inputs == (Operand(address + 1000, (100,), "u8"),)
    assert read.checksum == zlib.crc32(content[50:150])
    assert [record.inputs for _, record in world.of("host", "PeDmaMsg")] == [(), ()]
    load, store = only(world, "pe_dma", "load"), only(world, "pe_dma", "store")
    assert (load.inputs, load.address) == ((Operand(address + 50, (100,), "u8"),), tcm)
    assert (store.inputs, store.address) == ((Operand(tcm, (100,), "u8"),), address + 1000)
