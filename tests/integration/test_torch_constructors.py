"""Constructors with values of their own: sequences, random numbers, tensors like others."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench import DPPolicy, torch
from tests.support.topologies import variant_text
from tests.support.world import simulate

TOPOLOGY = variant_text(sip__cube_mesh={"w": 1, "h": 1}, cube__pe_layout__pe_per_corner=1)
"""Four PEs."""


def on_a_rank(program: Callable[[], Any], *, data: bool = True) -> Any:
    return simulate(lambda rank: program(), 1, topology=TOPOLOGY, data=data).returned[0]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: torch.arange(5), np.arange(5)),
        (lambda: torch.arange(2, 9, 3), np.array([2, 5, 8])),
        (lambda: torch.arange(9, 2, -3), np.array([9, 6, 3])),
        (lambda: torch.arange(start=1, end=3), np.array([1, 2])),
        (lambda: torch.arange(0.0, 1.0, 0.25), np.arange(0, 1, 0.25, np.float32)),
        (lambda: torch.arange(1, 2.5), np.array([1, 2], np.float32)),
        (lambda: torch.arange(3, dtype=torch.float16), np.arange(3, dtype=np.float16)),
        (lambda: torch.arange(0), np.zeros(0, np.int64)),
        (lambda: torch.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype=np.float32)),
        (lambda: torch.eye(2, 3), np.eye(2, 3, dtype=np.float32)),
        (lambda: torch.full((2,), 7), np.array([7, 7])),
        (lambda: torch.full((2,), True), np.array([True, True])),
        (lambda: torch.full((2,), 0.5), np.array([0.5, 0.5], np.float32)),
        (lambda: torch.zeros(2, dtype=int), np.zeros(2, np.int64)),
        (lambda: torch.ones(2, dtype=torch.bool), np.array([True, True])),
        (lambda: torch.zeros_like(torch.ones(2, dtype=torch.int8)), np.zeros(2, np.int8)),
        (lambda: torch.ones_like(torch.zeros(2), dtype=torch.long), np.ones(2, np.int64)),
        (lambda: torch.full_like(torch.zeros(1, 2), 3), np.full((1, 2), 3, np.float32)),
    ],
)
def test_values_and_types_are_those_of_pytorch(
    make: Callable[[], torch.Tensor], expected: np.ndarray
) -> None:
    np.testing.assert_array_equal(on_a_rank(lambda: make().numpy()), expected, strict=True)


def test_tensors_like_others_have_their_placement() -> None:
    def program() -> list[Any]:
        rows = torch.zeros(4, 6, dp=DPPolicy(pe="row_wise"))
        part = rows.view(-1).narrow(0, 3, 15)
        made = [torch.empty_like(rows), torch.empty_like(part), torch.empty_like(rows.view(24))]
        made.append(torch.empty_like(rows, dp=DPPolicy()))
        return [[shard.spec.nbytes for shard in each.shards] for each in made]

    assert on_a_rank(program) == [[24] * 4, [60], [24] * 4, [96] * 4]


def test_random_numbers_depend_on_the_seed_and_the_calls_before_alone() -> None:
    def draws() -> list[Any]:
        made = [
            torch.rand(3, 4),
            torch.randn(1000),
            torch.randint(5, 9, (100,)),
            torch.randint(high=2, size=(4,), dtype=torch.uint8),
            torch.randperm(20),
            torch.rand_like(torch.zeros(500, dtype=torch.bfloat16)),
            torch.randn(2, dtype=torch.float64),
        ]
        return [each.numpy() for each in made]

    def program() -> tuple[list[Any], ...]:
        torch.manual_seed(11)
        first, second = draws(), draws()
        torch.manual_seed(11)
        own = torch.Generator().manual_seed(3)
        assert torch.initial_seed() == 11
        return first, second, draws(), [torch.rand(2, generator=own).numpy()]

    first, second, again, _ = on_a_rank(program)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
    assert (first[0] != second[0]).any()
    uniform, normal, integers, bits, order, brain, double = first
    assert uniform.dtype == np.float32
    assert 0 <= uniform.min() <= uniform.max() < 1
    assert abs(normal.mean()) < 0.2 < abs(normal.std()) < 1.2
    assert set(integers.tolist()) == {5, 6, 7, 8}
    assert (integers.dtype, bits.dtype) == (np.int64, np.uint8)
    assert sorted(order.tolist()) == list(range(20))
    assert brain.astype(np.float32).max() < 1
    assert double.dtype == np.float64


def test_ranks_draw_different_numbers_until_they_are_seeded_alike() -> None:
    def program(_rank: int) -> tuple[Any, Any]:
        free = torch.rand(4).numpy()
        torch.manual_seed(0)
        return free, torch.rand(4).numpy()

    world = simulate(program, 2, topology=TOPOLOGY)
    (free, seeded), (other, alike) = world.returned[0], world.returned[1]
    assert (free != other).any()
    np.testing.assert_array_equal(seeded, alike)


def test_without_data_random_tensors_have_shapes() -> None:
    assert on_a_rank(lambda: torch.rand(2, 3).numpy().shape, data=False) == (2, 3)


def test_the_device_of_a_rank_has_its_names() -> None:
    def program() -> list[Any]:
        named = [torch.zeros(1, device=each) for each in ("ahbm", "ahbm:0", 0, None)]
        named.append(torch.zeros(1, device=torch.device("ahbm", 0)))
        own = torch.device("ahbm:0")
        return [len(named), str(own), repr(own), own == torch.device(0), own.type, own.index]

    assert on_a_rank(program) == [5, "ahbm:0", "device(type='ahbm', index=0)", True, "ahbm", 0]


@pytest.mark.parametrize(
    ("make", "error", "problem"),
    [
        (lambda: torch.arange(0, 5, 0), RuntimeError, "step must be nonzero"),
        (
            lambda: torch.arange(5, 0),
            RuntimeError,
            "upper bound and lower bound inconsistent with step sign",
        ),
        (lambda: torch.arange("5"), TypeError, "arange(): argument 'end' must be Number, not str"),
        (torch.arange, TypeError, "arange() received an invalid combination"),
        (lambda: torch.linspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
        (lambda: torch.randint(5, 5, (2,)), RuntimeError, "got from=5 >= to=5"),
        (lambda: torch.randint(0, 300, (2,), dtype=torch.int8), RuntimeError, "out of bounds for"),
        (lambda: torch.randint((2,)), TypeError, "it takes (high, size) or (low, high, size)"),
        (lambda: torch.rand(2, dtype=torch.int32), RuntimeError, '"rand" not implemented for'),
        (lambda: torch.manual_seed(1.5), TypeError, "manual_seed expected a long, but got float"),
        (lambda: torch.manual_seed(1 << 64), RuntimeError, "Overflow when unpacking long"),
        (
            lambda: torch.zeros(2, device="cuda"),
            RuntimeError,
            "Expected one of cpu, ahbm device type at start of device string: cuda",
        ),
        (lambda: torch.zeros(2, device="cpu"), RuntimeError, "zeros(): kernbench has no tensors"),
        (lambda: torch.zeros(2, device="ahbm:1"), RuntimeError, "invalid device ordinal 1"),
        (lambda: torch.zeros(2, device=1.0), TypeError, "argument 'device' must be torch.device"),
        (lambda: torch.device("ahbm:x"), RuntimeError, "Invalid device string: 'ahbm:x'"),
        (
            lambda: torch.ones(2, requires_grad=True),
            RuntimeError,
            "ones(): requires_grad=True: kernbench has no gradients",
        ),
        (lambda: torch.zeros_like([1]), TypeError, "must be Tensor, not list"),
    ],
)
def test_what_a_constructor_refuses_it_names(
    make: Callable[[], object], error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=re.escape(problem)):
        on_a_rank(make)
