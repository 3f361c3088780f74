import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from runtime import DPPolicy, tl, torch
from runtime.core.dtypes import ALL, DType
from runtime.core.errors import AllocationError
from runtime.model.placement import ONE_PE
from tests.support.topologies import variant_text
from tests.support.world import simulate

TOPOLOGY = variant_text(sip__cube_mesh={"w": 2, "h": 1}, cube__pe_layout__pe_per_corner=1)
"""Two cubes with four PEs."""


def on_a_rank(program: Callable[[], Any], *, data: bool = True) -> Any:
    """The result of `program` on a single rank."""
    return simulate(lambda rank: program(), 1, topology=TOPOLOGY, data=data).returned[0]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: torch.zeros(2, 3), np.zeros((2, 3), np.float32)),
        (lambda: torch.zeros((2, 3)), np.zeros((2, 3), np.float32)),
        (lambda: torch.ones(4, dtype=torch.int8), np.ones(4, np.int8)),
        (lambda: torch.full((2, 2), 1.5, dtype=torch.float16), np.full((2, 2), 1.5, np.float16)),
        (lambda: torch.full(3, -7, dtype=torch.int32), np.full(3, -7, np.int32)),
    ],
)
def test_a_constructor_creates_the_elements_of_its_name(
    make: Callable[[], torch.Tensor], expected: np.ndarray
) -> None:
    values = on_a_rank(lambda: make().numpy())
    np.testing.assert_array_equal(values, expected)
    assert values.dtype == expected.dtype


@pytest.mark.parametrize("dtype", ALL, ids=repr)
@pytest.mark.parametrize(
    "policy",
    [
        DPPolicy(num_cubes=1, num_pes=1),
        DPPolicy(),
        DPPolicy(cube="column_wise", pe="row_wise"),
        DPPolicy(cube="row_wise", pe="column_wise"),
        DPPolicy(cube="column_wise", pe="column_wise"),
    ],
    ids=["one", "replicate", "columns of rows", "rows of columns", "columns of columns"],
)
def test_written_elements_are_read_back_in_every_placement_and_type(
    dtype: DType, policy: DPPolicy
) -> None:
    array = np.arange(8 * 16).reshape(8, 16).astype(dtype.numpy)
    np.testing.assert_array_equal(
        on_a_rank(lambda: torch.from_numpy(array, dp=policy).numpy()), array
    )


def test_every_copy_of_a_replicated_tensor_holds_all_elements() -> None:
    array = np.arange(6, dtype=np.float32)
    copies = on_a_rank(lambda: torch.from_numpy(array, dp=DPPolicy(num_pes=2)).copies())
    assert [(cube, pe) for cube, pe, _ in copies] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert all((part == array).all() for _, _, part in copies)


def test_shards_hold_the_columns_of_their_cube() -> None:
    array = np.arange(8, dtype=np.int32).reshape(2, 4)
    copies = on_a_rank(
        lambda: torch.from_numpy(array, dp=DPPolicy(cube="column_wise", num_pes=1)).copies()
    )
    assert [part.tolist() for _, _, part in copies] == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]


def test_the_facts_of_a_tensor() -> None:
    tensor = on_a_rank(lambda: torch.empty(3, 5, dtype=torch.float16))
    assert (
        tensor.shape,
        tensor.dtype,
        tensor.itemsize,
        tensor.numel(),
        tensor.nbytes,
        len(tensor),
    ) == (
        (3, 5),
        torch.float16,
        2,
        15,
        30,
        3,
    )


def test_a_0d_tensor_has_one_element_and_no_length() -> None:
    def program() -> tuple[Any, str]:
        tensor = torch.full((), 3)
        with pytest.raises(TypeError, match="0-d tensor"):
            len(tensor)
        return tensor.numpy(), repr(tensor)

    assert on_a_rank(program) == (3, "tensor(shape=(), dtype=torch.int64, mean=3, norm=3)")


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0)])
def test_an_empty_tensor_can_be_made_and_read(shape: tuple[int, ...]) -> None:
    values, shown = on_a_rank(lambda: (torch.zeros(shape).numpy(), repr(torch.ones(shape))))
    assert values.shape == shape
    assert shown == f"tensor(shape={shape}, dtype=torch.float32, mean=nan, norm=0)"


def test_a_tensor_shows_shape_type_mean_and_norm() -> None:
    shown = on_a_rank(lambda: repr(torch.from_numpy(np.array([3.0, 4.0], np.float32))))
    assert shown == "tensor(shape=(2,), dtype=torch.float32, mean=3.5, norm=5)"


def test_copy_broadcasts_converts_and_copies_from_tensors() -> None:
    def program() -> list[Any]:
        tensor = torch.empty(2, 3, dtype=torch.int32)
        first = tensor.copy_([1.9, -2.9, 3]).numpy()
        other = torch.from_numpy(np.array([[5], [6]], np.int8))
        return [
            first.tolist(),
            tensor.copy_(other).numpy().tolist(),
            tensor.copy_(7).numpy().tolist(),
        ]

    assert on_a_rank(program) == [[[1, -2, 3]] * 2, [[5, 5, 5], [6, 6, 6]], [[7, 7, 7]] * 2]


def test_copy_of_another_shape_is_an_error_with_both_shapes() -> None:
    problem = "The size of the source (3,) must match or broadcast to the tensor's (2, 2)"
    with pytest.raises(RuntimeError, match=re.escape(problem)):
        on_a_rank(lambda: torch.zeros(2, 2).copy_(np.zeros(3)))


def test_a_negative_length_is_refused_as_in_pytorch() -> None:
    with pytest.raises(
        RuntimeError, match=re.escape("Trying to create tensor with negative dimension: (-1, 2)")
    ):
        on_a_rank(lambda: torch.zeros(-1, 2))


@pytest.mark.parametrize(("value", "dtype"), [(300, torch.int8), (1e10, torch.int32)])
def test_a_constant_that_the_type_does_not_hold_is_refused(value: float, dtype: DType) -> None:
    problem = f"value {value} cannot be converted to type {dtype.torch_name} without overflow"
    with pytest.raises(RuntimeError, match=re.escape(problem)):
        on_a_rank(lambda: torch.full(3, value, dtype=dtype))


def test_a_numpy_type_that_the_hardware_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="dtype complex64 does not exist on this hardware"):
        on_a_rank(lambda: torch.from_numpy(np.zeros(3, np.complex64)))


def test_a_placement_that_does_not_divide_is_refused_before_anything_is_allocated() -> None:
    def program() -> int:
        with pytest.raises(ValueError, match="3 elements do not divide by 2"):
            torch.zeros(3, dp=DPPolicy(cube="row_wise", num_pes=1))
        return torch.zeros(1).shards[0].address

    assert on_a_rank(program) == on_a_rank(lambda: torch.zeros(1).shards[0].address)


def test_a_tensor_larger_than_its_slice_names_the_memory() -> None:
    with pytest.raises(
        AllocationError, match=r"hbm of sip 0 cube 0 pe 0: cannot allocate 8,589,934,592 bytes"
    ):
        on_a_rank(lambda: torch.empty(1 << 31, dp=ONE_PE))


def test_the_memory_of_a_dead_tensor_is_used_again() -> None:
    def program() -> bool:
        address = torch.empty(100).shards[0].address
        return torch.empty(100).shards[0].address == address

    assert on_a_rank(program)


def test_the_memory_of_a_tensor_that_a_kernel_captures_is_used_again_after_the_kernel() -> None:
    def launched(target: torch.Tensor) -> int:
        captured = torch.empty(100)

        def kernel(x: tl.Pointer) -> None:
            tl.store(x, tl.load(x, 1) + captured.numel())

        torch.launch("count", kernel, target)
        torch.ahbm.synchronize()
        return captured.address

    def program() -> int:
        target = torch.zeros(1)
        return len({launched(target) for _ in range(6)})

    # Two by turns: the event that completes a kernel resumes the program, and still refers to the
    # kernel when the program allocates the next tensor.
    assert on_a_rank(program) == 2


def test_live_tensors_do_not_overlap() -> None:
    def program() -> list[tuple[int, int]]:
        tensors = [torch.empty(size) for size in (1, 100, 7)]
        return sorted((tensor.shards[0].address, tensor.nbytes) for tensor in tensors)

    ranges = on_a_rank(program)
    assert all(start + nbytes <= after for (start, nbytes), (after, _) in pairwise(ranges))


def test_without_data_tensors_have_shape_and_time_but_no_values() -> None:
    def program() -> tuple[Any, str, int]:
        tensor = torch.ones(2, 3)
        return tensor.numpy(), repr(tensor), torch.ahbm.elapsed_ps()

    values, shown, without_ps = on_a_rank(program, data=False)
    assert values.shape == (2, 3)
    assert np.ma.getmaskarray(values).all()
    assert shown == "tensor(shape=(2, 3), dtype=torch.float32, no data)"
    assert without_ps > 0


def test_reading_waits_for_the_copy_before_it_and_neither_allocation_nor_a_copy_blocks() -> None:
    def program() -> list[int]:
        times = [torch.ahbm.elapsed_ps()]
        tensor = torch.empty(10)
        times.append(torch.ahbm.elapsed_ps())
        tensor.copy_(1)
        times.append(torch.ahbm.elapsed_ps())
        tensor.numpy()
        times.append(torch.ahbm.elapsed_ps())
        return times

    start, allocated, queued, read = on_a_rank(program)
    assert start == allocated == queued == 0 < read


def test_torch_outside_of_a_rank_is_an_error_with_the_command_to_start_one() -> None:
    with pytest.raises(RuntimeError, match="no rank is running here: start the script with"):
        torch.zeros(1)
