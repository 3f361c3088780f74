"""Policies and the shards that follow from them."""

import re

import numpy as np
import pytest

from runtime.model.placement import ONE_PE, DPPolicy, resolve_dp_policy

ARRAY = np.arange(4 * 8).reshape(4, 8)


def parts(
    policy: DPPolicy, array: np.ndarray = ARRAY, cubes: int = 2, pes: int = 2
) -> dict[tuple[int, int], list]:
    shards = resolve_dp_policy(policy, array.shape, 4, cubes=cubes, pes=pes, target_sip=0)
    return {(shard.cube, shard.pe): array[shard.index].tolist() for shard in shards}


def test_column_wise_gives_each_cube_its_own_columns() -> None:
    placed = parts(DPPolicy(cube="column_wise", num_pes=1))
    assert placed == {
        (0, 0): [[0, 1, 2, 3], [8, 9, 10, 11], [16, 17, 18, 19], [24, 25, 26, 27]],
        (1, 0): [[4, 5, 6, 7], [12, 13, 14, 15], [20, 21, 22, 23], [28, 29, 30, 31]],
    }


def test_rows_over_cubes_and_columns_over_pes_make_blocks() -> None:
    placed = parts(DPPolicy(cube="row_wise", pe="column_wise"))
    assert placed[0, 0] == [[0, 1, 2, 3], [8, 9, 10, 11]]
    assert placed[0, 1] == [[4, 5, 6, 7], [12, 13, 14, 15]]
    assert placed[1, 0] == [[16, 17, 18, 19], [24, 25, 26, 27]]


def test_columns_over_cubes_and_over_pes_split_twice() -> None:
    placed = parts(DPPolicy(cube="column_wise", pe="column_wise"))
    assert [placed[at][0] for at in ((0, 0), (0, 1), (1, 0), (1, 1))] == [
        [0, 1],
        [2, 3],
        [4, 5],
        [6, 7],
    ]


def test_replicate_copies_all_elements_to_every_pe() -> None:
    assert all(part == ARRAY.tolist() for part in parts(DPPolicy()).values())


def test_the_default_placement_of_a_tensor_is_one_shard_on_pe_0_of_cube_0() -> None:
    assert parts(ONE_PE) == {(0, 0): ARRAY.tolist()}


def test_the_parts_go_to_the_given_cubes_in_rising_order() -> None:
    placed = parts(DPPolicy(cube="row_wise", num_pes=1, cubes=(1, 3)), cubes=4)
    assert placed == {(1, 0): ARRAY[:2].tolist(), (3, 0): ARRAY[2:].tolist()}
    assert parts(DPPolicy(num_pes=1, cubes=(2,)), cubes=3) == {(2, 0): ARRAY.tolist()}


@pytest.mark.parametrize("cubes", [(), (1, 1), (2, 1), 3, "01", (1.5,), ("a", 1), (True,)])
def test_cubes_are_given_once_each_and_in_order(cubes: object) -> None:
    with pytest.raises(ValueError, match=r"DPPolicy\(cubes=.*each once, in rising order"):
        DPPolicy(cubes=cubes)  # pyright: ignore[reportArgumentType] - by mistake


def test_cubes_are_given_by_number_or_by_their_numbers_and_exist() -> None:
    with pytest.raises(ValueError, match="either a number of cubes or the cubes"):
        DPPolicy(num_cubes=1, cubes=(0,))
    for cube in (-1, 2):
        with pytest.raises(ValueError, match="this topology has cubes 0 to 1"):
            parts(DPPolicy(cubes=(cube,)))


def test_the_columns_of_a_vector_are_its_elements() -> None:
    assert parts(DPPolicy(cube="column_wise", num_pes=1), np.arange(6)) == {
        (0, 0): [0, 1, 2],
        (1, 0): [3, 4, 5],
    }


@pytest.mark.parametrize("keyword", ["sip", "num_sips"])
def test_placement_across_sips_does_not_exist(keyword: str) -> None:
    with pytest.raises(TypeError, match=keyword):
        DPPolicy(**{keyword: "row_wise"})


def test_an_unknown_split_names_the_nearest() -> None:
    with pytest.raises(
        ValueError,
        match=re.escape("DPPolicy(pe='colum_wise'): unknown split; did you mean 'column_wise'?"),
    ):
        DPPolicy(pe="colum_wise")


@pytest.mark.parametrize("count", [0, 3, -1])
def test_a_policy_cannot_use_more_cubes_than_there_are(count: int) -> None:
    with pytest.raises(
        ValueError, match=re.escape(f"DPPolicy(num_cubes={count}): this topology has 1 to 2")
    ):
        parts(DPPolicy(num_cubes=count))


def test_an_axis_that_does_not_divide_is_refused_with_the_length_to_pad_to() -> None:
    with pytest.raises(
        ValueError, match="splits axis 1: 9 elements do not divide by 2; pad the axis to 10"
    ):
        parts(DPPolicy(cube="column_wise"), np.zeros((4, 9)))


def test_a_scalar_can_only_be_replicated() -> None:
    with pytest.raises(ValueError, match="a 0-d tensor cannot be placed row_wise over 2 cubes"):
        parts(DPPolicy(cube="row_wise"), np.zeros(()))
    assert len(parts(DPPolicy(), np.zeros(()))) == 4


def test_an_empty_tensor_has_shards_without_bytes() -> None:
    shards = resolve_dp_policy(DPPolicy(cube="row_wise"), (0, 3), 4, cubes=2, pes=1, target_sip=0)
    assert [shard.nbytes for shard in shards] == [0, 0]
