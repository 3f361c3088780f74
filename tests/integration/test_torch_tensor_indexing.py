"""`tensor[...]` and matrices stored in tiles: the host reads a matrix in every layout."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import basic_indices

from runtime import DPPolicy, tl, torch
from runtime.device.memory.indexing import select
from tests.support.topologies import variant_text
from tests.support.world import simulate

TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)
"""Two cubes with two PEs."""
MATRIX = np.arange(6 * 8, dtype=np.int32).reshape(6, 8)
ROWS = DPPolicy(cube="row_wise", num_pes=1)
COLUMNS = DPPolicy(cube="column_wise", pe="column_wise")
LAYOUTS = [None, torch.blocked_row_major(4, 3), torch.blocked_column_major(2, 5)]


def on_a_rank(program: Callable[[], Any], *, data: bool = True) -> Any:
    return simulate(lambda rank: program(), 1, topology=TOPOLOGY, data=data).returned[0]


indices = st.lists(
    basic_indices((6, 8), allow_newaxis=False, allow_ellipsis=True), min_size=1, max_size=6
)


def steps_of_one(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return all(part.step in (None, 1) for part in parts if isinstance(part, slice))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    indices.map(lambda some: [index for index in some if steps_of_one(index)]),
    st.sampled_from(LAYOUTS),
)
def test_reading_inside_one_shard_is_indexing_as_in_numpy(asked: list[Any], layout: Any):
    def program() -> list[Any]:
        tensor = torch.from_numpy(MATRIX, layout=layout)
        return [tensor[index] for index in asked]

    for index, part in zip(asked, on_a_rank(program), strict=True):
        np.testing.assert_array_equal(part, MATRIX[index])
        assert part.shape == MATRIX[index].shape


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    indices.map(lambda some: [index for index in some if steps_of_one(index)]),
    st.sampled_from(LAYOUTS),
)
def test_writing_inside_one_shard_is_assignment_as_in_numpy(asked: list[Any], layout: Any):
    expected = MATRIX.copy()
    for number, index in enumerate(asked):
        expected[index] = -number

    def program() -> np.ndarray:
        tensor = torch.from_numpy(MATRIX, layout=layout)
        for number, index in enumerate(asked):
            tensor[index] = -number
        return tensor.numpy()

    np.testing.assert_array_equal(on_a_rank(program), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "policy", [DPPolicy(), ROWS, COLUMNS, DPPolicy(cube="row_wise", pe="column_wise")]
)
def test_a_matrix_in_tiles_is_read_as_it_was_written_in_every_placement(
    policy: DPPolicy, layout: Any
):
    np.testing.assert_array_equal(
        on_a_rank(lambda: torch.from_numpy(MATRIX, dp=policy, layout=layout).numpy()), MATRIX
    )


def test_each_shard_is_blocked_by_itself():
    """A kernel without tiles reads the memory of its shard in the order of addresses."""

    def copy(source: tl.Pointer, target: tl.Pointer) -> None:
        at = tl.program_id(1) * 12
        tl.store(target + at, tl.load(source + at, 12))

    def program() -> list[int]:
        source = torch.from_numpy(
            np.arange(24, dtype=np.int32).reshape(4, 6),
            dp=ROWS,
            layout=torch.blocked_row_major(2, 4),
        )
        target = torch.zeros(24, dtype=torch.int32, dp=ROWS)
        torch.launch("copy", copy, source, target)
        return target.numpy().tolist()

    first = [0, 1, 2, 3, 6, 7, 8, 9, 4, 5, 10, 11]
    assert on_a_rank(program) == first + [number + 12 for number in first]


def test_a_value_that_is_written_may_be_a_tensor_and_is_broadcast_and_converted():
    def program() -> list[Any]:
        tensor = torch.zeros(2, 4, dtype=torch.int32)
        tensor[1] = torch.from_numpy(np.array([1.9, 2, 3, -4.9], np.float32))
        tensor[:, 2:] = [[7], [8]]
        return tensor.numpy().tolist()

    assert on_a_rank(program) == [[0, 0, 7, 7], [1, 2, 8, 8]]


def test_a_value_of_another_shape_is_an_error_with_both_shapes():
    problem = "The size of the source (3,) must match or broadcast to the tensor's (8,)"
    with pytest.raises(RuntimeError, match=re.escape(problem)):
        on_a_rank(lambda: torch.from_numpy(MATRIX).__setitem__(0, np.zeros(3)))


def test_writing_reaches_every_copy():
    def program() -> list[Any]:
        tensor = torch.zeros(3, dp=DPPolicy())
        tensor[1:] = 5
        return [part.tolist() for _, _, part in tensor.copies()]

    assert on_a_rank(program) == [[0, 5, 5]] * 4


@pytest.mark.parametrize(
    "index", [(slice(0, 3),), (slice(3, 6),), (0,), (-1, 3), (slice(4, 6), slice(2, 5)), (...,)]
)
def test_a_slice_of_whole_shards_or_inside_one_shard_can_be_read(index: Any):
    np.testing.assert_array_equal(
        on_a_rank(lambda: torch.from_numpy(MATRIX, dp=ROWS)[index]), MATRIX[index]
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("policy", [DPPolicy(), ROWS, COLUMNS])
@pytest.mark.parametrize("index", [slice(2, 4), (..., 0), 0, (slice(1, 5), slice(1, 7))])
def test_a_slice_across_shards_is_read_and_written(policy: DPPolicy, layout: Any, index: Any):
    def program() -> list[Any]:
        tensor = torch.from_numpy(MATRIX, dp=policy, layout=layout)
        part = tensor[index]
        tensor[index] = -part
        return [part, tensor.numpy()]

    part, written = on_a_rank(program)
    np.testing.assert_array_equal(part, MATRIX[index])
    expected = MATRIX.copy()
    expected[index] *= -1
    np.testing.assert_array_equal(written, expected)


@pytest.mark.parametrize(
    ("index", "error", "problem"),
    [
        (6, IndexError, "index 6 is out of bounds for dimension 0 with size 6"),
        ((0, -9), IndexError, "index -9 is out of bounds for dimension 1 with size 8"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        ((..., ...), IndexError, "an index can only have a single ellipsis"),
        (slice(0, 6, 2), ValueError, "slices of tensors have step 1, not 2"),
        (
            True,
            IndexError,
            "a tensor is indexed with integers, slices and an ellipsis, not with True",
        ),
        (
            1.0,
            IndexError,
            "a tensor is indexed with integers, slices and an ellipsis, not with 1.0",
        ),
        (
            (None, 0),
            IndexError,
            "a tensor is indexed with integers, slices and an ellipsis, not with None",
        ),
        (
            np.zeros((6, 8), bool),
            IndexError,
            "a tensor is indexed with integers, slices and an ellipsis",
        ),
    ],
)
def test_an_index_that_does_not_exist_is_refused(index: Any, error: type[Exception], problem: str):
    with pytest.raises(error, match=re.escape(problem)):
        select(index, (6, 8))


def test_numbers_of_numpy_are_indices_too():
    assert select(np.int64(-1), (6,)) == select(5, (6,))


def test_rows_can_be_iterated():
    rows = on_a_rank(lambda: list(torch.from_numpy(MATRIX)))
    assert [row.tolist() for row in rows] == MATRIX.tolist()


def test_reading_a_row_moves_a_row():
    def program() -> tuple[int, int]:
        tensor = torch.zeros(64, 4096)
        torch.ahbm.synchronize()
        start_ps = torch.ahbm.elapsed_ps()
        tensor[5]
        row_ps = torch.ahbm.elapsed_ps() - start_ps
        tensor.numpy()
        return row_ps, torch.ahbm.elapsed_ps() - start_ps - row_ps

    row_ps, whole_ps = on_a_rank(program)
    assert row_ps < whole_ps / 10


def test_without_data_a_selection_has_a_shape_and_no_values():
    part = on_a_rank(lambda: torch.from_numpy(MATRIX)[2:4, 0], data=False)
    assert part.shape == (2,)
    assert np.ma.getmaskarray(part).all()


def test_a_layout_in_tiles_is_for_matrices():
    with pytest.raises(
        ValueError,
        match=re.escape("a layout in tiles is for matrices; a tensor of shape (6,) has 1 axes"),
    ):
        on_a_rank(lambda: torch.zeros(6, layout=torch.blocked_row_major(2, 2)))
