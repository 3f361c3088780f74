"""Numbers, tensors without axes and wrong arguments: results and errors are PyTorch's."""

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from runtime import torch
from tests.support.world import simulate


def on_a_rank(program: Callable[[], Any]) -> Any:
    return simulate(lambda rank: program(), 1).returned[0]


def raised(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - of any type, which is part of the result
        return f"{type(error).__name__}: {error}"
    return "nothing raised"


def test_a_number_counts_as_in_pytorch():
    def program() -> list[Any]:
        tenth = torch.tensor([0.1], dtype=torch.float16)
        byte, word = torch.tensor([3], dtype=torch.uint8), torch.tensor([3], dtype=torch.int32)
        return [
            # A number is compared in the type of the tensor.
            (tenth == 0.1).tolist(),
            (tenth < 0.1).tolist(),
            (torch.tensor([0.1], dtype=torch.bfloat16) == 0.1).tolist(),
            # A bound beyond the range of the type bounds nothing.
            byte.clamp(-5, 300).tolist(),
            word.clamp(-(2**40), 2**40).tolist(),
            torch.full((1,), -3.5, dtype=torch.int32).tolist(),
            torch.full((1,), -1, dtype=torch.uint8).tolist(),
            (np.bool_(True) == torch.ones(1)).tolist(),
        ]

    true, false, three = [True], [False], [3]
    assert on_a_rank(program) == [true, false, true, three, three, [-3], [255], true]


def test_a_number_that_the_type_cannot_take_is_refused():
    def program() -> list[str]:
        byte, word = torch.zeros(2, dtype=torch.uint8), torch.zeros(2, dtype=torch.int32)
        half = torch.zeros(2, dtype=torch.float16)
        return [
            raised(lambda: byte.fill_(300)),
            raised(lambda: word.__setitem__(0, 2**40)),
            raised(lambda: word.fill_(float("nan"))),
            raised(lambda: half.fill_(1e6)),
            raised(lambda: torch.full((2,), 1e6, dtype=torch.float16)),
            raised(lambda: word < 2**70),
        ]

    *overflows, last = on_a_rank(program)
    assert all(re.match("RuntimeError: value .* without overflow", each) for each in overflows)
    assert last.startswith("OverflowError: int too big to convert")


def test_a_tensor_without_axes_is_reduced_along_its_axis_and_formatted_as_its_number():
    def program() -> list[Any]:
        x = torch.tensor(1.5)
        return [
            [x.sum(0).item(), x.mean(-1).item(), x.amax(0).item(), x.softmax(0).item()],
            [
                f"{x:.2f}",
                f"{torch.tensor(3)}",
                x in torch.ones(2),
                torch.tensor(1) in torch.ones(2),
            ],
            [torch.softmax(torch.zeros(0, 3), 0).shape, torch.ones(2).eq(1).tolist()],
            [raised(lambda: x.size(0)), raised(lambda: x.sum(1))],
        ]

    reduced, formatted, others, errors = on_a_rank(program)
    assert reduced == [1.5, 1.5, 1.5, 1.0]
    assert formatted == ["1.50", "3", False, True]
    assert others == [(0, 3), [True, True]]
    assert errors[0] == "IndexError: Dimension specified as 0 but tensor has no dimensions"
    assert errors[1].startswith("IndexError: Dimension out of range")


WRONG: list[tuple[Callable[[Any], object], str]] = [
    (lambda _: torch.tensor([True]) - True, "NotImplementedError: Subtraction, the `-` operator"),
    (lambda _: 1 - torch.tensor([True]), "NotImplementedError: Subtraction, the `-` operator"),
    (lambda x: torch.add(x, 1, out=torch.zeros(2, 3)), "RuntimeError: output with shape [2, 3]"),
    (lambda x: x[torch.tensor([1])], "IndexError: a tensor is indexed with integers"),
    (lambda x: x[torch.tensor(True)], "IndexError: a tensor is indexed with integers"),
    (lambda x: x[x > 1], "IndexError: a tensor is indexed with integers"),
    (lambda x: None in x, "RuntimeError: Tensor.__contains__ only supports Tensor or scalar"),
    (float, "ValueError: only one element tensors can be converted to Python scalars"),
    (lambda x: setattr(x, "data", x), "AttributeError: attribute 'data' of a Tensor is not"),
    (lambda x: setattr(x, "dtype", torch.int32), "AttributeError: attribute 'dtype'"),
    (lambda x: torch.equal(x, cast("Any", 1)), "TypeError: equal(): argument 'other' (position 2)"),
    (
        lambda x: torch.allclose(x, cast("Any", np.ones(3))),
        "TypeError: allclose(): argument 'other'",
    ),
    (lambda _: torch.ones(0).amax(), "RuntimeError: amax(): Expected reduction dim"),
    (lambda _: torch.Tensor([1, 2]), "TypeError: torch.Tensor is the class of tensors"),
    (pickle.dumps, "TypeError: a tensor in simulated memory is not pickled"),
]


def test_what_cannot_be_right_is_an_error():
    def program() -> list[str]:
        return [raised(lambda call=call: call(torch.arange(3))) for call, _ in WRONG]

    for error, (_, beginning) in zip(on_a_rank(program), WRONG, strict=True):
        assert error.startswith(beginning)


def test_a_deep_copy_has_memory_of_its_own():
    def program() -> list[Any]:
        x = torch.ones(2)
        other = copy.deepcopy([x])[0]
        other += 1
        return [x.tolist(), other.tolist()]

    assert on_a_rank(program) == [[1, 1], [2, 2]]


def test_an_unknown_attribute_lists_public_names():
    error = on_a_rank(lambda: raised(lambda: cast("Any", torch.ones(2)).zzzzzz))
    assert "known: T, abs" in error
    assert not re.search("allocate|map_requests|policy_of_copies", error)
