"""Atomic operations of kernels on the chip: values, times, order, and what is refused."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from coordinator.verify.check import verify
from runtime import DPPolicy, tl, torch
from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.errors import KernelError
from runtime.language.value import Pointer
from runtime.model.addresses import AddressMap
from runtime.model.topology import parse_topology
from runtime.wire.environment import FAST_FORWARD
from tests.support.checked import CUBE, TWO_CUBES, findings
from tests.support.one_pe import run_on_one_pe
from tests.support.world import Simulation, simulate

SIZE = 48
INTEGERS = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
NUMBERS = {"add": np.add, "max": np.maximum, "min": np.minimum, "xchg": lambda _, value: value}
CASES = [
    *((name, np.dtype(each)) for name in NUMBERS for each in ("i4", "i8", "f2", "f4", "f8")),
    *((name, np.dtype(ml_dtypes.bfloat16)) for name in NUMBERS),
    *((name, np.dtype(each)) for name in INTEGERS for each in ("i4", "i8")),
]


def drawn(dtype: np.dtype, seed: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    if dtype.kind == "i":
        return draw.integers(-(1 << 31), 1 << 31, SIZE, np.int64).astype(dtype)
    return draw.standard_normal(SIZE).astype(dtype)


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_a_memory_combines_elements_as_numpy_does(name: str, dtype: np.dtype):
    def kernel(x: Pointer, y: Pointer, old: Pointer) -> None:
        tl.store(old, tl.atomic(name, x, tl.load(y, SIZE)))

    x, y = drawn(dtype, 1), drawn(dtype, 2)
    # It compares with the mock runtime and with a replay of the op log, too.
    new, _, old = run_on_one_pe(kernel, [x, y, np.zeros_like(x)]).arrays
    with np.errstate(all="ignore"):
        expected = (NUMBERS | INTEGERS)[name](x, y).astype(dtype)
    assert new.tobytes() == expected.tobytes()
    assert old.tobytes() == x.tobytes()


@pytest.mark.parametrize(("name", "function"), [("umax", np.maximum), ("umin", np.minimum)])
def test_integers_without_a_sign_are_compared_by_their_bits(name: str, function: np.ufunc):
    def kernel(x: Pointer, y: Pointer) -> None:
        assert tl.atomic(name, x, tl.load(y, SIZE), old=False) is None

    x, y = (drawn(np.dtype("i4"), seed) for seed in (1, 2))
    new, _ = run_on_one_pe(kernel, [x, y]).arrays
    assert np.array_equal(new.view("u4"), function(x.view("u4"), y.view("u4")))


def test_a_comparison_replaces_what_has_its_bits():
    def kernel(x: Pointer, y: Pointer, compare: Pointer, old: Pointer) -> None:
        value, expected = tl.load(y, SIZE), tl.load(compare, SIZE)
        pending = tl.atomic_async("cas", x, value, compare=expected, sem="relaxed")
        tl.store(old, pending.wait())

    x, y = drawn(np.dtype("f4"), 1), drawn(np.dtype("f4"), 2)
    # Zeros of both signs are equal, and have other bits; a NaN has its own.
    x[:2] = 0.0, np.nan
    compare = np.where(np.arange(SIZE) % 2, x, -x).astype("f4")
    new, _, _, old = run_on_one_pe(kernel, [x, y, compare, np.zeros_like(x)]).arrays
    assert new.tobytes() == np.where(np.arange(SIZE) % 2, y, x).tobytes()
    assert old.tobytes() == x.tobytes()


def test_rows_at_a_pitch_are_one_request_and_what_lies_between_stays():
    def kernel(x: Pointer, y: Pointer) -> None:
        tl.atomic("add", x, tl.load(y, (4, 3)), (8, 1), out=tl.empty((4, 3), tl.int32))

    x, y = np.arange(32, dtype=np.int32), np.arange(100, 112, dtype=np.int32)
    done = run_on_one_pe(kernel, [x, y])
    expected = x.copy().reshape(4, 8)
    expected[:, :3] += y.reshape(4, 3)
    assert np.array_equal(done.arrays[0].reshape(4, 8), expected)
    (record,) = done.records("pe_dma", "atomic add")
    (served,) = done.records("hbm_ctrl", "atomic add")
    assert record.start_ps < served.start_ps == served.end_ps < record.end_ps
    assert record.nbytes == served.nbytes == 48


def test_its_time_is_that_of_a_load_and_of_the_write_of_its_bytes():
    def loading(x: Pointer) -> None:
        tl.load(x, 64)

    def combining(x: Pointer) -> None:
        tl.atomic("add", x, tl.full(64, 1.0, tl.float32))

    x = np.zeros(64, np.float32)
    load, atomic = (
        run_on_one_pe(kernel, [x]).records("pe_dma", name)[0]
        for kernel, name in ((loading, "load"), (combining, "atomic add"))
    )
    # 256 bytes are one burst of a channel: 10 ns at 32 GB/s x 0.8. The read begins with the head of
    # the operands, where a load has sent 16 B at 256 GB/s; the old elements leave when all is
    # written, and not cut-through.
    burst, old, request = 10_000, 1_000, 63
    assert (atomic.end_ps - atomic.start_ps) - (load.end_ps - load.start_ps) == (
        burst + old - request
    )


def test_an_unused_result_is_an_acknowledgement_and_shorter():
    def kernel(x: Pointer) -> None:
        value = tl.full(512, 1.0, tl.float32)
        tl.atomic("add", x, value)
        tl.atomic("add", x, value, old=False)

    done = run_on_one_pe(kernel, [np.zeros(512, np.float32)])
    first, second = (each.end_ps - each.start_ps for each in done.records("pe_dma", "atomic add"))
    # 2 KiB at 256 GB/s, less the acknowledgement of 16 B.
    assert first - second == 8_000 - 63
    assert np.array_equal(done.arrays[0], np.full(512, 2.0))


def test_old_elements_take_no_place_among_the_packets_that_reads_request():
    def kernel(x: Pointer) -> None:
        tl.load(x, 4096)
        tl.atomic("add", x, tl.full(512, 1.0, tl.float32))
        tl.load(x, 4096)

    done = run_on_one_pe(kernel, [np.zeros(4096, np.float32)], pe__dma__outstanding=1)
    first, second = (each.end_ps - each.start_ps for each in done.records("pe_dma", "load"))
    assert first == second


def on_pes(
    kernel: Callable[..., None], arrays: list[np.ndarray], topology: str = CUBE, **options: bool
) -> tuple[list[np.ndarray], Simulation]:
    """The arrays after a kernel on all PEs; the first one is divided over them."""
    rows = DPPolicy(cube="row_wise", pe="row_wise")
    alone = DPPolicy(num_cubes=1, num_pes=1)

    def program(_rank: int) -> list[np.ndarray]:
        tensors = [
            torch.from_numpy(each, dp=alone if index else rows) for index, each in enumerate(arrays)
        ]
        torch.launch("atomics", kernel, *tensors)
        return [each.numpy() for each in tensors]

    world = simulate(program, 1, topology=topology, verify=True, **options)
    return world.returned[0], world


@pytest.mark.parametrize("topology", [CUBE, TWO_CUBES], ids=["one cube", "credits"])
def test_operations_of_several_pes_on_one_element_lose_nothing(topology: str):
    def kernel(old: Pointer, count: Pointer) -> None:
        pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
        one = tl.full((4,), 1, tl.int32)
        for step in range(4):
            tl.store(old + (pe * 4 + step) * 4, tl.atomic("add", count, one, sem="relaxed"))

    pes = 4 if topology is CUBE else 8
    given = [np.zeros(16 * pes, np.int32), np.zeros(4, np.int32)]
    (old, count), world = on_pes(kernel, given, topology)
    assert np.array_equal(count, np.full(4, 4 * pes))
    # Each operation has seen another number.
    for element in range(4):
        assert sorted(old[element::4]) == list(range(4 * pes))
    # One request is combined at one instant: all of its elements have seen the same.
    assert np.array_equal(old.reshape(-1, 4), np.repeat(old[::4], 4).reshape(-1, 4))
    addresses = AddressMap(parse_topology(topology, "topology.yaml", 1))
    verdict = verify(world.records, world.written, world.contents, addresses)
    assert verdict.passed, verdict.problems


def test_a_block_in_several_packets_slices_and_rows_is_combined_as_a_whole():
    def kernel(x: Pointer, y: Pointer) -> None:
        if tl.program_id(0) == 0:
            whole = tl.load(y, (64, 128))
            # A view with gaps, over the slices of all PEs.
            old = tl.atomic("add", x, whole[:, 32:96], sem="release")
            tl.atomic("xchg", x, old.to(tl.float32) * 2.0)

    x = np.arange(4096, dtype=np.float32)
    y = np.arange(8192, dtype=np.float32) % 77
    (new, _), world = on_pes(kernel, [x, y])
    assert np.array_equal(new, x * 2)
    served = [each for each in world.records[0] if each.name == "atomic add"]
    assert {each.pe for each in served if each.engine == "hbm_ctrl"} == {0, 1, 2, 3}
    addresses = AddressMap(parse_topology(CUBE, "topology.yaml", 1))
    assert verify(world.records, world.written, world.contents, addresses).passed


def test_a_run_without_data_has_the_same_times():
    def kernel(x: Pointer, y: Pointer) -> None:
        tl.atomic("max", y, tl.load(x + tl.program_id(0) * 8, 8))

    arrays = [np.zeros(32, np.float32), np.zeros(8, np.float32)]
    ends = []
    for data in (True, False):

        def program(_rank: int, arrays: list[np.ndarray] = arrays) -> int:
            rows = DPPolicy(cube="row_wise", pe="row_wise")
            x, y = (torch.from_numpy(each, dp=rows) for each in arrays)
            handle = torch.launch("atomics", kernel, x, y)
            torch.ahbm.synchronize()
            return handle.pe_exec_ps

        ends.append(simulate(program, 1, topology=CUBE, data=data).returned[0])
    assert ends[0] == ends[1]


def mixed(x: Pointer, y: Pointer) -> None:
    if tl.program_id(0):
        tl.atomic("add", y, tl.full(1, 1.0, tl.float32))
    else:
        tl.store(y, tl.full(1, 1.0, tl.float32))


def all_atomic(x: Pointer, y: Pointer) -> None:
    tl.atomic("add", y, tl.full(1, 1.0, tl.float32), sem="relaxed")


def before_a_barrier(x: Pointer, y: Pointer) -> None:
    tl.atomic("add", y, tl.full(1, 1.0, tl.float32))
    tl.barrier()
    if tl.program_id(0) == 0:
        tl.store(y, tl.full(1, 1.0, tl.float32))


def behind_its_own(x: Pointer, y: Pointer) -> None:
    tl.atomic("add", y, tl.full(1, 1.0, tl.float32), sem="relaxed")
    if tl.program_id(0) == 0:
        tl.store(y, tl.full(1, 1.0, tl.float32))


@pytest.mark.parametrize("kernel", [mixed, behind_its_own])
def test_a_store_beside_an_atomic_operation_of_another_pe_is_refused(
    kernel: Callable[..., None],
):
    given = [np.zeros(32, np.float32), np.zeros(1, np.float32)]
    with pytest.raises(KernelError, match="stores to elements 0:1 of tensor"):
        on_pes(kernel, given)


@pytest.mark.parametrize("kernel", [all_atomic, before_a_barrier])
def test_atomic_operations_and_a_store_behind_a_barrier_are_no_conflict(
    kernel: Callable[..., None],
):
    given = [np.zeros(32, np.float32), np.zeros(1, np.float32)]
    (_, y), _ = on_pes(kernel, given)
    assert y == (4.0 if kernel is all_atomic else 1.0)


def test_a_block_in_flight_is_not_used_before_its_wait():
    def kernel(x: Pointer) -> None:
        pending = tl.atomic_async("add", x, tl.full(4, 1, tl.int32))
        tl.load(x + 2, 4)
        pending.wait()

    with pytest.raises(KernelError, match=r"tl\.load reads bytes of memory that the tl\.atomic at"):
        run_on_one_pe(kernel, [np.zeros(8, np.int32)])


def racing(x: Pointer, y: Pointer) -> None:
    if tl.program_id(0):
        tl.atomic("add", y, tl.full(1, 1.0, tl.float32))
    else:
        tl.load(y, 1)


@pytest.mark.parametrize(("kernel", "races"), [(racing, 1), (all_atomic, 0), (before_a_barrier, 0)])
def test_a_plain_access_beside_an_atomic_operation_is_a_race_and_two_operations_are_none(
    kernel: Callable[..., None], races: int
):
    def program(_rank: int) -> None:
        rows = DPPolicy(cube="row_wise", pe="row_wise")
        x = torch.zeros(32, dp=rows)
        y = torch.from_numpy(np.zeros(1, np.float32), dp=DPPolicy(num_cubes=1, num_pes=1))
        torch.launch("racy", kernel, x, y)
        torch.ahbm.synchronize()

    assert len(findings(program).races) == races


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (("plus", tl.int32), {}, "no operation 'plus'; known: add, and, cas"),
        (("or", tl.float32), {}, "'or' of f32: a memory has it for i32, i64"),
        (("add", tl.int8), {}, "'add' of i8: a memory has it for f16, bf16"),
        (("cas", tl.int32), {}, "compare= is a value of 'cas', and of no other operation"),
        (("add", tl.int32), {"sem": "seq_cst"}, "sem 'seq_cst' is none of relaxed, acquire"),
        (("add", tl.int32), {"mask": True}, "tl.atomic has no argument 'mask'"),
    ],
    ids=str,
)
def test_what_a_memory_lacks_is_refused(
    arguments: tuple[str, tl.DType], options: dict[str, object], text: str
):
    name, dtype = arguments

    def kernel(x: Pointer) -> None:
        tl.atomic(name, x, tl.full(4, 1, dtype), **options)  # type: ignore[arg-type]

    with pytest.raises(KernelError) as raised:
        run_on_one_pe(kernel, [np.zeros(4, dtype.numpy)])
    assert text in raised.value.problem


@pytest.mark.skipif(not IS_COMPILED, reason="only the compiled core computes periods")
def test_a_product_beside_atomic_operations_is_that_of_all_its_steps(
    monkeypatch: pytest.MonkeyPatch,
):
    def kernel(x: Pointer, a: Pointer, c: Pointer, count: Pointer) -> None:
        if tl.program_id(0) == 0:
            matrix = tl.ref(a, (512, 512))
            tl.wait(tl.composite("gemm", matrix, matrix, tl.ref(c, (512, 512))))
        else:
            for _ in range(40):
                tl.atomic("add", count, tl.full((64,), 1, tl.int32))

    given = [np.zeros(4, np.int32), *(np.zeros(1 << 18, np.float16) for _ in "ac")]
    worlds = list[Simulation]()
    for each in ("1", "0"):
        monkeypatch.setenv(FAST_FORWARD, each)
        worlds.append(on_pes(kernel, [*given, np.zeros(64, np.int32)])[1])
    skipping, stepping = worlds
    assert skipping.done.skipped_steps > 0 == stepping.done.skipped_steps
    assert skipping.digest == stepping.digest
