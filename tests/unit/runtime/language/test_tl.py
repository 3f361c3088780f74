"""The kernel language in the mock runtime: operators, number operands, pointers, and program
ids.
"""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from kernbench import mock, tl
from runtime.core.dtypes import DType
from runtime.core.trace import Operand
from runtime.language.mock import MockPe
from runtime.language.value import Pointer, Value
from tests.support.kernels import FLOATS, NARROW, computed, eps, value

X = np.array([1, 2, 4], np.float32)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (lambda x: x + 1, X + 1),
        (lambda x: 1 + x, X + 1),
        (lambda x: x - 3, X - 3),
        (lambda x: 3 - x, 3 - X),
        (lambda x: x * 2.5, X * 2.5),
        (lambda x: 2.5 * x, X * 2.5),
        (lambda x: x / 2, X / 2),
        (lambda x: 8 / x, 8 / X),
        (lambda x: -x, -X),
        (lambda x: x + x * x, X + X * X),
        (lambda x: tl.maximum(x, 2), np.maximum(X, 2)),
        (lambda x: tl.minimum(3, x), np.minimum(X, 3)),
        (lambda x: tl.fma(2, x, 1), 2 * X + 1),
        (lambda x: tl.clamp(x, 2, 3), np.clip(X, 2, 3)),
        (lambda x: x * np.float32(2), X * 2),
    ],
)
def test_operators_take_values_and_numbers_on_either_side(
    kernel: Callable[[Value], Value], expected: np.ndarray
) -> None:
    np.testing.assert_array_equal(computed(lambda: kernel(value(X))), expected)


def test_a_number_takes_the_type_of_the_value_operand() -> None:
    # The bf16 nearest to 0.3 is 0.30078125, and three times that is a bf16; the bf16 nearest to 0.9
    # is 0.8984375.
    result = computed(lambda: value(np.array([3], ml_dtypes.bfloat16)) * 0.3)
    assert float(result[0]) == 3 * 0.30078125


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_an_overflow_becomes_infinite_without_a_warning(dtype: DType) -> None:
    x = np.array([1, -1], dtype.numpy)
    for kernel in (lambda: value(x) * 1e39, lambda: value(x) / 0.0, lambda: value(x) * 1e30 * 1e30):
        assert np.isinf(computed(kernel).astype(np.float64)).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_nan_propagates_through_comparisons_and_reductions(dtype: DType) -> None:
    x = np.array([1, np.nan, 3], dtype.numpy)
    for kernel in (
        tl.relu,
        tl.max,
        tl.min,
        tl.sum,
        lambda v: tl.maximum(v, 2),
        lambda v: tl.clamp(v, 0, 1),
    ):
        assert np.isnan(computed(lambda kernel=kernel: kernel(value(x))).astype(np.float64)).any()
    np.testing.assert_array_equal(computed(lambda: value(x).to(tl.int8)), [1, 0, 3])


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_a_sum_is_more_precise_than_additions_in_its_type(dtype: DType) -> None:
    # 4 / eps has neighbours 8 apart, so each addition in the type itself would lose its 1.
    large = 4 / eps(dtype)
    parts = np.array([large, 1, 1, 1, -large], dtype.numpy)
    assert computed(lambda: tl.sum(value(parts))) == 3


def test_softmax_does_not_overflow() -> None:
    np.testing.assert_array_equal(
        computed(lambda: tl.softmax(value(np.full(4, 3e38, np.float32)))), np.full(4, 0.25)
    )


def test_a_reduction_of_everything_has_no_axis_and_can_be_stored() -> None:
    total = np.zeros(1, np.float32)

    def kernel(x: Pointer, total: Pointer) -> None:
        block = tl.load(x, 3)
        assert tl.sum(block).shape == ()
        tl.store(total, tl.sum(block - tl.max(block)))

    mock.launch(kernel, X, total)
    assert total == (X - X.max()).sum()


def test_an_empty_sum_is_zero() -> None:
    np.testing.assert_array_equal(
        computed(lambda: tl.sum(tl.zeros((3, 0), tl.float16), axis=1)), np.zeros(3)
    )


def test_pointers_count_elements() -> None:
    at = Pointer(0x1000, tl.float16)
    assert (int(at + 3), int(3 + at), int(at + 3 - 1)) == (0x1006, 0x1006, 0x1004)


@pytest.mark.parametrize("dtype", NARROW, ids=repr)
def test_bytes_and_values_are_inverse(dtype: DType) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype.numpy)
    back = Value.from_bytes(value(array).tobytes(), (2, 3), dtype)
    np.testing.assert_array_equal(back.data, array)
    assert (back.numel, back.nbytes) == (6, 6 * dtype.itemsize)


def test_a_value_has_the_location_of_its_elements() -> None:
    block = Value((4, 6), tl.float16, None, address=0x100)
    assert block.operand == Operand(0x100, (4, 6), "f16")
    assert block[1:3, 2:].operand == Operand(0x100 + 2 * (6 + 2), (2, 4), "f16", (6, 1))
    assert repr(block) == "Value(shape=(4, 6), dtype=f16)"


def test_a_value_without_data_keeps_shape_and_type() -> None:
    results: list[Value] = []

    def kernel(x: Pointer) -> None:
        blank = Value((2, 3), tl.float16, None)
        product = tl.dot(blank, blank.T, out_dtype=tl.float16)
        results.append(tl.sum(tl.exp(product + 1), axis=0))
        tl.composite("gemm", blank, blank.T, tl.ref(x, (2, 2))).wait()
        tl.store(x, results[0].to(tl.float32))

    x = np.ones((2, 2), np.float32)
    mock.launch(kernel, x)
    assert (results[0].shape, results[0].dtype, results[0].data, results[0].tobytes()) == (
        (2,),
        tl.float16,
        None,
        b"",
    )
    assert x.all()


@pytest.mark.parametrize(("a", "b", "result"), [(0, 4, 0), (1, 4, 1), (8, 4, 2), (9, 4, 3)])
def test_cdiv_rounds_up(a: int, b: int, result: int) -> None:
    assert tl.cdiv(a, b) == result


def test_the_tile_of_the_gemm_engine_is_the_topology_files() -> None:
    tiles: list[tl.TileSize] = []
    mock.launch(lambda: tiles.append(tl.gemm_tile()))
    assert tiles == [MockPe().gemm_tile]


def test_load_and_store_move_blocks_of_memory() -> None:
    memory = np.arange(12, dtype=np.int32)

    def kernel(at: Pointer) -> None:
        block = tl.load(at + 4, (2, 3))
        assert block.shape == (2, 3)
        tl.store(at, block * 10)

    mock.launch(kernel, memory)
    assert memory.tolist() == [40, 50, 60, 70, 80, 90, *range(6, 12)]


def test_a_loaded_value_is_a_copy() -> None:
    memory = np.ones(2, np.float32)

    def kernel(at: Pointer) -> None:
        before = tl.load(at, 2)
        tl.store(at, tl.zeros(2, tl.float32))
        tl.store(at + 1, before[:1])

    mock.launch(kernel, memory)
    assert memory.tolist() == [0, 1]


def test_every_pe_has_its_program_ids_and_the_number_of_programs() -> None:
    seen: list[tuple[int, ...]] = []
    mock.launch(
        lambda: seen.append(
            (tl.program_id(0), tl.program_id(1), tl.num_programs(0), tl.num_programs(1))
        ),
        cubes=2,
        pes=3,
    )
    assert seen == [(pe, cube, 3, 2) for cube in range(2) for pe in range(3)]


def test_scratch_is_freed_at_the_end_of_its_block() -> None:
    half, made = 1 << 19, list[int]()

    def kernel() -> None:
        for _ in range(5):
            with tl.scratch():
                made.append(tl.zeros(half, tl.int8).address)
        made.append(tl.zeros(half, tl.int8).address)
        made.append(tl.zeros(half, tl.int8).address)

    mock.launch(kernel)
    first = made[0]
    assert made == [first] * 6 + [first + half]


def test_the_language_is_for_kernels_only() -> None:
    with pytest.raises(RuntimeError, match="tl works inside a kernel only"):
        tl.zeros(3, tl.float32)


def test_an_unknown_name_of_the_language_has_the_nearest_one_in_its_error() -> None:
    with pytest.raises(
        AttributeError, match=r"kernbench's tl has no maximun; did you mean 'maximum'\?"
    ):
        tl.maximun  # noqa: B018
