"""Tensor parallel layers on all SIPs in one process: closed forms, float64, groups, errors."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from kernbench import DPPolicy, torch
from runtime.tp import (
    ColumnParallelLinear,
    RowParallelLinear,
    copy_to_tp_region,
    destroy_model_parallel,
    gather_from_tp_region,
    get_data_parallel_rank,
    get_data_parallel_world_size,
    get_tensor_model_parallel_group,
    get_tensor_model_parallel_rank,
    get_tensor_model_parallel_world_size,
    initialize_model_parallel,
    reduce_from_tp_region,
    scatter_to_tp_region,
)
from tests.support.topologies import variant_text
from tests.support.world import simulate

FOUR_PES = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)
ULP = 2.0**-10
"""The distance of float16 numbers, relative to the larger power of two below."""


def ranks(program: Callable[[int], Any], sips: int, *, size: int | None = None) -> list[Any]:
    """The results of `program(rank)` with tensor parallel groups of `size` ranks, by default
    all.
    """

    def main(rank: int) -> Any:
        torch.distributed.init_process_group("ahbm")
        initialize_model_parallel(sips if size is None else size)
        return program(rank)

    returned = simulate(main, sips, topology=FOUR_PES).returned
    return [returned[rank] for rank in range(sips)]


def f16(value: float, *shape: int) -> torch.Tensor:
    return torch.full(shape, value, dtype=torch.float16)


def draw(seed: int, *shape: int) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) / 8).astype(np.float16)


def column(rank: int) -> np.ndarray:
    size = get_tensor_model_parallel_world_size()
    layer = ColumnParallelLinear(32, 32 * size)
    layer.weight.copy_(0.01 * (rank + 1))
    return layer(f16(0.5, 4, 32)).numpy()


def row(rank: int) -> np.ndarray:
    size = get_tensor_model_parallel_world_size()
    layer = RowParallelLinear(32 * size, 32)
    layer.weight.copy_(0.01 * (rank + 1))
    return layer(f16(0.1 * (rank + 1), 4, 32)).numpy()


def mlp(_rank: int) -> np.ndarray:
    size = get_tensor_model_parallel_world_size()
    first, second = ColumnParallelLinear(16, 16 * size), RowParallelLinear(16 * size, 16)
    first.weight.copy_(0.02)
    second.weight.copy_(0.03)
    return second(first(f16(0.1, 4, 16))).numpy()


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_layers_with_equal_weights_give_the_closed_forms(size: int):
    for rank, y in enumerate(ranks(column, size)):
        np.testing.assert_allclose(y, np.full((4, 32), 0.16 * (rank + 1)), rtol=3 * ULP)
    squares = sum((rank + 1) ** 2 for rank in range(size))
    for y in ranks(row, size):
        np.testing.assert_allclose(y, np.full((4, 32), 0.032 * squares), rtol=3 * ULP)
    first, *others = ranks(mlp, size)
    np.testing.assert_allclose(first, np.full((4, 16), 0.01536 * size), rtol=3 * ULP)
    for other in others:
        np.testing.assert_array_equal(other, first)


def random_mlp(rank: int) -> tuple[np.ndarray, np.ndarray]:
    size = get_tensor_model_parallel_world_size()
    first = ColumnParallelLinear(40, 64 * size, bias=True, gather_output=True)
    second = RowParallelLinear(64 * size, 48, bias=True, input_is_parallel=False)
    w1, b1, w2, b2 = draw(1, 40, 64 * size), draw(2, 64 * size), draw(3, 64 * size, 48), draw(4, 48)
    own = slice(rank * 64, (rank + 1) * 64)
    for target, source in (
        (first.weight, w1[:, own]),
        (first.bias, b1[own]),
        (second.weight, w2[own]),
        (second.bias, b2),
    ):
        assert target is not None
        target.copy_(source)
    hidden = first(torch.from_numpy(draw(5, 2, 5, 40)))
    return hidden.numpy(), second(hidden).numpy()


@pytest.mark.parametrize("size", [2, 3])
def test_random_weights_and_biases_agree_with_float64_and_between_the_ranks(size: int):
    x, w1, b1, w2, b2 = (
        draw(seed, *shape).astype(np.float64)
        for seed, shape in (
            (5, (2, 5, 40)),
            (1, (40, 64 * size)),
            (2, (64 * size,)),
            (3, (64 * size, 48)),
            (4, (48,)),
        )
    )
    (hidden, y), *others = ranks(random_mlp, size)
    np.testing.assert_allclose(hidden, x @ w1 + b1, rtol=ULP, atol=ULP / 8)
    # One rounding to float16 a rank, one of each sum, one of the bias.
    exact = hidden.astype(np.float64) @ w2 + b2
    np.testing.assert_allclose(y, exact, rtol=(size + 1) * ULP, atol=size * ULP)
    for other_hidden, other in others:
        np.testing.assert_array_equal(other_hidden, hidden)
        np.testing.assert_array_equal(other, y)


def regions(rank: int) -> dict[str, np.ndarray]:
    # Large enough to be spread over PEs.
    whole = np.arange(64 * 256, dtype=np.float32).reshape(64, 256)
    columns = DPPolicy(cube="column_wise", pe="column_wise")
    x, placed = torch.from_numpy(whole), torch.from_numpy(whole, dp=columns)
    part = scatter_to_tp_region(x)
    return {
        "copied": copy_to_tp_region(x).numpy(),
        "part": part.numpy(),
        "part of columns": scatter_to_tp_region(placed).numpy(),
        "joined": gather_from_tp_region(part).numpy(),
        "joined columns": gather_from_tp_region(placed).numpy()[:, 256 * rank : 256 * (rank + 1)],
        "sum": reduce_from_tp_region(torch.full((64, 256), float(rank + 1))).numpy(),
    }


def test_regions_divide_join_and_add_any_placement():
    whole = np.arange(64 * 256, dtype=np.float32).reshape(64, 256)
    for rank, found in enumerate(ranks(regions, 2)):
        own = whole[:, 128 * rank : 128 * (rank + 1)]
        np.testing.assert_array_equal(found["part"], own)
        np.testing.assert_array_equal(found["part of columns"], own)
        for name in ("copied", "joined", "joined columns"):
            np.testing.assert_array_equal(found[name], whole)
        np.testing.assert_array_equal(found["sum"], np.full((64, 256), 3.0))


def test_groups_of_a_divisor_of_the_world_are_consecutive_ranks():
    def program(rank: int) -> tuple[int, ...]:
        total = reduce_from_tp_region(torch.full((4,), float(10**rank)))
        group = torch.distributed.get_process_group_ranks(get_tensor_model_parallel_group())
        assert get_tensor_model_parallel_world_size() == get_data_parallel_world_size() == 2
        places = get_tensor_model_parallel_rank(), get_data_parallel_rank()
        return (*group, *places, int(total.numpy()[0]))

    assert ranks(program, 4, size=2) == [
        (0, 1, 0, 0, 11),
        (0, 1, 1, 0, 11),
        (2, 3, 0, 1, 1100),
        (2, 3, 1, 1, 1100),
    ]


def test_groups_can_be_made_again_after_they_were_destroyed():
    def program(_rank: int) -> tuple[int, int]:
        before = get_tensor_model_parallel_world_size()
        destroy_model_parallel()
        initialize_model_parallel(1)
        return before, get_tensor_model_parallel_world_size()

    assert ranks(program, 2) == [(2, 1), (2, 1)]


def message_of(program: Callable[[], Any], error: type[Exception], *, ready: bool = True) -> str:
    """The message of the error that `program` raises on both of two ranks."""

    def main(_rank: int) -> str:
        torch.distributed.init_process_group("ahbm")
        if ready:
            initialize_model_parallel(2)
        with pytest.raises(error) as caught:
            program()
        return str(caught.value)

    messages = simulate(main, 2, topology=FOUR_PES).returned
    assert messages[0] == messages[1]
    return messages[0]


@pytest.mark.parametrize(
    "program",
    [
        get_tensor_model_parallel_rank,
        get_tensor_model_parallel_world_size,
        get_tensor_model_parallel_group,
        partial(ColumnParallelLinear, 2, 2),
        partial(RowParallelLinear, 2, 2),
        lambda: copy_to_tp_region(torch.zeros(2)),
    ],
    ids=["rank", "size", "group", "column", "row", "copy"],
)
def test_before_initialisation_every_function_names_the_missing_call(program: Callable[[], Any]):
    expected = "TP group not initialised; call initialize_model_parallel() first"
    assert message_of(program, RuntimeError, ready=False) == expected


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            lambda: ColumnParallelLinear(4, 33),
            "out_features (33) is not divisible by the tensor model parallel size (2)",
        ),
        (
            lambda: RowParallelLinear(33, 4),
            "in_features (33) is not divisible by the tensor model parallel size (2)",
        ),
        (
            lambda: scatter_to_tp_region(torch.zeros(4, 3)),
            "the last axis (3) is not divisible by the tensor model parallel size (2)",
        ),
    ],
    ids=["column", "row", "scatter"],
)
def test_a_length_that_the_ranks_do_not_divide_is_refused_with_both_numbers(
    program: Callable[[], Any], message: str
):
    assert message_of(program, ValueError) == message


def test_a_size_that_does_not_divide_the_world_and_a_second_call_are_refused():
    for size in (3, 0):
        expected = f"world size (2) is not divisible by the tensor model parallel size ({size})"
        wrong = partial(initialize_model_parallel, size)
        assert message_of(wrong, ValueError, ready=False) == expected
    assert message_of(lambda: initialize_model_parallel(2), RuntimeError) == (
        "tensor model parallel group is already initialized; call destroy_model_parallel() first"
    )
