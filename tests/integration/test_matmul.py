"""Matrix products of device tensors: values, types, placements, errors, and the time of a PE."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from kernbench import DPPolicy, tl, torch
from kernbench.oracle.theory.engines.gemm import GemmNumbers, GemmShape
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.dtypes import DType
from tests.support.products import ONE_PE as ONE_PE_TOPOLOGY
from tests.support.topologies import variant_text
from tests.support.world import simulate

TWO_BY_TWO = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)
ONE_PE = DPPolicy(num_cubes=1, num_pes=1)
PLACEMENTS = {
    "one PE": ONE_PE,
    "rows": DPPolicy(cube="row_wise", pe="row_wise"),
    "columns": DPPolicy(cube="column_wise", pe="column_wise"),
    "both": DPPolicy(cube="row_wise", pe="column_wise"),
    "replicated": DPPolicy(),
    "tiles": torch.tiled_row_major(32, 40),
}


def on_a_rank(program: Callable[[], Any], *, topology: str = TWO_BY_TWO, data: bool = True) -> Any:
    return simulate(lambda _rank: program(), 1, topology=topology, data=data).returned[0]


def draw(*shape: int, dtype: Any = np.float16) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


def test_the_elements_do_not_depend_on_the_placements_of_operands_and_result():
    a, b = draw(36, 200), draw(200, 76)

    def program() -> list[np.ndarray]:
        of_a = {name: torch.from_numpy(a, dp=dp) for name, dp in PLACEMENTS.items()}
        of_b = {name: torch.from_numpy(b, dp=dp) for name, dp in PLACEMENTS.items()}
        pairs = [(name, "rows") for name in PLACEMENTS] + [("both", name) for name in PLACEMENTS]
        results = [torch.matmul(of_a[left], of_b[right]) for left, right in pairs]
        results += [
            torch.matmul(of_a["one PE"], of_b["one PE"], dp=dp) for dp in PLACEMENTS.values()
        ]
        return [result.numpy() for result in results]

    first, *others = on_a_rank(program)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    # One rounding to float16; the roundings in float32 are far below it.
    np.testing.assert_allclose(first, exact, rtol=2**-10, atol=2**-10)
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_the_operator_and_the_methods_are_the_functions():
    def program() -> list[np.ndarray]:
        a, b = torch.from_numpy(draw(4, 3)), torch.from_numpy(draw(3, 5))
        return [each.numpy() for each in (torch.matmul(a, b), a @ b, a.matmul(b), a.mm(b))]

    first, *others = on_a_rank(program)
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_each_replica_of_a_result_is_complete():
    a, b = draw(4, 64), draw(64, 32)

    def program() -> list[np.ndarray]:
        result = torch.matmul(torch.from_numpy(a), torch.from_numpy(b), dp=DPPolicy())
        return [elements for *_, elements in result.copies()]

    copies = on_a_rank(program)
    assert len(copies) == 4
    for copy in copies:
        np.testing.assert_array_equal(copy, copies[0])
    assert copies[0].any()


@pytest.mark.parametrize("placement", ["rows", "columns", "tiles"])
def test_operands_are_transposed_in_every_combination(placement: str):
    a, b, bias = draw(36, 200), draw(200, 76), draw(76)
    dp = PLACEMENTS[placement]

    def program() -> list[np.ndarray]:
        results = list[torch.Tensor]()
        for left, right in product((False, True), repeat=2):
            first = torch.from_numpy(np.ascontiguousarray(a.T) if left else a, dp=dp)
            second = torch.from_numpy(np.ascontiguousarray(b.T) if right else b, dp=dp)
            row = torch.from_numpy(bias)
            results.append(
                torch.matmul(first, second, bias=row, transpose_input=left, transpose_other=right)
            )
        return [result.numpy() for result in results]

    exact = a.astype(np.float64) @ b.astype(np.float64) + bias
    for result in on_a_rank(program):
        np.testing.assert_allclose(result, exact, rtol=2**-10, atol=2**-10)


def test_vectors_folded_axes_and_empty_sums_have_the_shapes_of_pytorch():
    a, b, v = draw(3, 5, 70), draw(70, 40), draw(70)

    def program() -> list[np.ndarray]:
        folded, matrix, vector = (torch.from_numpy(each) for each in (a, b, v))
        pairs = [
            (folded, matrix),
            (vector, matrix),
            (folded, vector),
            (vector, vector),
            (torch.zeros(2, 0), torch.zeros(0, 3)),
            (torch.zeros(0, 2), torch.zeros(2, 3)),
        ]
        return [torch.matmul(left, right).numpy() for left, right in pairs]

    found = on_a_rank(program)
    expected = [a @ b, v @ b, a @ v, v @ v, np.zeros((2, 3)), np.zeros((0, 3))]
    for result, exact in zip(found, expected, strict=True):
        assert result.shape == exact.shape
        np.testing.assert_allclose(result, exact, rtol=2**-7, atol=2**-7)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int8])
def test_the_result_has_the_type_of_the_operands_and_is_rounded_once(dtype: DType):
    a, b = (draw(40, 100) * 2).astype(dtype.numpy), (draw(100, 40) * 2).astype(dtype.numpy)
    result = on_a_rank(lambda: torch.matmul(torch.from_numpy(a), torch.from_numpy(b)).numpy())
    assert result.dtype == dtype.numpy
    exact = a.astype(np.float64) @ b.astype(np.float64)
    if dtype == torch.int8:
        # Sums are exact in int32; the result wraps like PyTorch's.
        np.testing.assert_array_equal(result, exact.astype(np.int64).astype(np.int8))
    else:
        eps = {torch.float16: 2**-11, torch.bfloat16: 2**-8, torch.float32: 2**-22}[dtype]
        np.testing.assert_allclose(result.astype(np.float64), exact, rtol=eps, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, np.int8])
def test_sums_too_deep_for_the_scratch_continue_through_memory(dtype: Any):
    # Two parts of the depth: 7 panels of 32 rows do not fit 1 MiB.
    a, b = (draw(40, 9000) * 2).astype(dtype), (draw(9000, 33) * 2).astype(dtype)
    bias = draw(33).astype(dtype)

    def program() -> np.ndarray:
        row = torch.from_numpy(bias)
        return torch.matmul(torch.from_numpy(a), torch.from_numpy(b), bias=row).numpy()

    exact = a.astype(np.float64) @ b.astype(np.float64) + bias
    if dtype == np.int8:
        np.testing.assert_array_equal(on_a_rank(program), exact.astype(np.int64).astype(np.int8))
    else:
        np.testing.assert_allclose(on_a_rank(program), exact, rtol=2**-10, atol=2**-8)


def test_a_product_of_few_rows_runs_on_as_many_pes_as_its_columns_have_tiles():
    def program() -> None:
        rows = PLACEMENTS["rows"]
        torch.matmul(torch.zeros(4, 256), torch.zeros(256, 128, dp=rows))

    world = simulate(lambda _rank: program(), 1, topology=TWO_BY_TWO, data=False)
    assert len({(record.cube, record.pe) for _, record in world.of("pe_gemm")}) == 4


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ((4, 3), (2, 5), "mat1 and mat2 shapes cannot be multiplied (4x3 and 2x5)"),
        ((2, 4, 3), (2, 5), "mat1 and mat2 shapes cannot be multiplied (8x3 and 2x5)"),
        ((3,), (2, 5), "mat1 and mat2 shapes cannot be multiplied (1x3 and 2x5)"),
        ((4, 3), (2,), "size mismatch, got input (4), mat (4x3), vec (2)"),
        ((), (2, 2), "both arguments to matmul need to be at least 1D, but they are 0D and 2D"),
    ],
)
def test_shapes_that_do_not_match_are_refused_as_in_pytorch(
    left: tuple[int, ...], right: tuple[int, ...], message: str
):
    with pytest.raises(RuntimeError) as caught:
        on_a_rank(lambda: torch.matmul(torch.empty(left), torch.empty(right)))
    assert str(caught.value) == message


def test_types_that_do_not_match_or_that_the_engine_lacks_are_refused():
    def of_types(left: DType, right: DType) -> Callable[[], torch.Tensor]:
        return lambda: torch.matmul(torch.empty(2, 2, dtype=left), torch.empty(2, 2, dtype=right))

    with pytest.raises(RuntimeError, match=r"^expected m1 and m2 to have the same dtype, but got"):
        on_a_rank(of_types(torch.float32, torch.float16))
    with pytest.raises(
        RuntimeError, match=r"^matmul: the GEMM engine multiplies .* not torch.int32"
    ):
        on_a_rank(of_types(torch.int32, torch.int32))
    with pytest.raises(
        TypeError, match=r"argument 'other' \(position 2\) must be Tensor, not list"
    ):
        on_a_rank(lambda: torch.matmul(torch.empty(2, 2), [[1.0]]))  # pyright: ignore[reportArgumentType]
    with pytest.raises(RuntimeError, match=r"^self must be a matrix"):
        on_a_rank(lambda: torch.mm(torch.empty(2), torch.empty(2, 2)))
    with pytest.raises(RuntimeError, match=r"^matmul: the bias has shape \(3,\); .* takes \(2,\)"):
        on_a_rank(lambda: torch.matmul(torch.empty(2, 2), torch.empty(2, 2), bias=torch.empty(3)))


def one_tile_at_a_time(a: tl.Pointer, b: tl.Pointer, out: tl.Pointer, size: int) -> None:
    """Kernel: each step loads one tile of each operand and waits for its product."""
    tile = tl.gemm_tile()
    for top in range(0, size, tile.m):
        for left in range(0, size, tile.n):
            with tl.scratch():
                acc = None
                for depth in range(0, size, tile.k):
                    first = tl.load(a + top * size + depth, (tile.m, tile.k), strides=(size, 1))
                    second = tl.load(b + depth * size + left, (tile.k, tile.n), strides=(size, 1))
                    acc = tl.dot(first, second, acc=acc)
                assert acc is not None
                tl.store(out + top * size + left, acc.to(out.dtype), strides=(size, 1))


@pytest.mark.slow
def test_a_product_with_reuse_is_within_its_bounds_and_six_times_as_fast_as_tile_by_tile():
    size, text = 512, variant_text(**ONE_PE_TOPOLOGY)

    def program(*, by_tiles: bool) -> None:
        # Written by the host, so that all operations of the PE are those of the product.
        a, b = (torch.from_numpy(np.zeros((size, size), np.float16)) for _ in "ab")
        if by_tiles:
            out = torch.empty(size, size, dtype=torch.float16)
            torch.launch("tiles", one_tile_at_a_time, a, b, out, size)
        else:
            torch.matmul(a, b)

    times = dict[bool, int]()
    for by_tiles in (False, True):
        world = simulate(
            lambda _rank, by_tiles=by_tiles: program(by_tiles=by_tiles),
            1,
            topology=text,
            data=False,
        )
        records = world.records[0]
        pe = [record for record in records if record.engine.startswith("pe_")]
        times[by_tiles] = max(record.end_ps for record in pe) - min(
            record.start_ps for record in pe
        )
    numbers = GemmNumbers.of(TopologyFile.of(text))
    shape = GemmShape(size, size, size)
    # The pipeline of the engine with all operands in TCM, and both of them loaded before.
    loads_ps = numbers.memory_bound_ps(2 * size * size * 2, 0)
    bound_ps = numbers.compute_bound_ps(shape)
    assert bound_ps < times[False] < numbers.staged_ps(shape, 2, 2) + loads_ps
    assert bound_ps / times[False] > 0.9
    assert times[True] > 6 * times[False]


@pytest.mark.slow
def test_few_rows_times_a_weight_without_placements_have_copies_in_the_cubes_and_the_same_sums():
    x, w = draw(8, 1000), draw(1000, 1000)

    def program() -> tuple[list[np.ndarray], list[int]]:
        a, b = torch.from_numpy(x), torch.from_numpy(w)
        results, times = list[np.ndarray](), list[int]()
        # With a placement each PE computes what it holds, from where the operands are. The second
        # product finds its memory mapped.
        columns = DPPolicy(cube="column_wise", pe="column_wise", num_cubes=5, num_pes=8)
        for dp in (None, None, columns, columns):
            torch.ahbm.synchronize()
            began_ps = torch.ahbm.elapsed_ps()
            y = torch.matmul(a, b, transpose_other=True, dp=dp)
            torch.ahbm.synchronize()
            times.append(torch.ahbm.elapsed_ps() - began_ps)
            results.append(y.numpy())
        return results[1::2], times[1::2]

    (copies, placed), (copies_ps, placed_ps) = simulate(
        lambda _rank: program(), 1, topology=variant_text()
    ).returned[0]
    np.testing.assert_array_equal(copies, placed)
    assert copies_ps < 0.7 * placed_ps


class TestAGivenTensor:
    def test_it_takes_the_product_in_a_window(self):
        a, b = draw(36, 40), draw(40, 24)

        def program() -> tuple[np.ndarray, np.ndarray]:
            x, y, whole = torch.from_numpy(a), torch.from_numpy(b), torch.zeros(38, 24).half()
            result = torch.matmul(x, y, out=whole.narrow(0, 1, 36))
            assert result.storage is whole.storage
            return torch.matmul(x, y).numpy(), whole.numpy()

        product_alone, whole = on_a_rank(program)
        np.testing.assert_array_equal(whole[1:-1], product_alone)
        assert not whole[[0, -1]].any()

    def test_another_shape_is_refused(self):
        def program() -> None:
            x = torch.from_numpy(draw(4, 4))
            torch.matmul(x, x, out=torch.zeros(4, 5).half())

        problem = r"out is torch.float16 of shape \(4, 5\); the result is torch.float16 of shape"
        with pytest.raises(Exception, match=problem):
            on_a_rank(program)
