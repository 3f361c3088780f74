"""Constructors of tensors: results for numbers, sequences and arrays, and refusals."""

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernbench import DPPolicy, torch
from tests.support.topologies import variant_text
from tests.support.world import simulate

TOPOLOGY = variant_text(sip__cube_mesh={"w": 1, "h": 1}, cube__pe_layout__pe_per_corner=1)
TYPES = (
    "torch.float16, torch.bfloat16, torch.float32, torch.int8, torch.int32, torch.int64, "
    "torch.uint8, torch.bool, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2"
)


def on_a_rank(program: Callable[[], Any]) -> Any:
    """The result of `program` on the only rank of a run."""
    return simulate(lambda rank: program(), 1, topology=TOPOLOGY).returned[0]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (2.5, np.float32(2.5)),
        (7, np.int64(7)),
        ([], np.zeros(0, np.float32)),
        ([1, 2, 3], np.array([1, 2, 3], np.int64)),
        ([True, False], np.array([True, False])),
        (np.zeros(2), np.zeros(2)),
        (np.array([200], np.uint8), np.array([200], np.uint8)),
        ([1, 2.5], np.array([1, 2.5], np.float32)),
        ([[1.0, 2.0], [3.0, 4.0]], np.array([[1, 2], [3, 4]], np.float32)),
        (((1,), (2,)), np.array([[1], [2]], np.int64)),
        (np.arange(3, dtype=np.int8), np.arange(3, dtype=np.int8)),
        (np.float16(1.5), np.float16(1.5)),
        ([np.float32(1), np.float32(2)], np.array([1, 2], np.float32)),
        (np.ones(2, ml_dtypes.bfloat16), np.ones(2, ml_dtypes.bfloat16)),
    ],
    ids=repr,
)
def test_tensor_infers_the_element_type_as_pytorch_does(data: object, expected: Any) -> None:
    values = on_a_rank(lambda: torch.tensor(data).numpy())
    np.testing.assert_array_equal(values, expected)
    assert (values.dtype, values.shape) == (expected.dtype, expected.shape)


@pytest.mark.parametrize(
    ("data", "dtype", "expected"),
    [
        ([1, 2], torch.float16, np.array([1, 2], np.float16)),
        ([1.9, -1.9], torch.int32, np.array([1, -1], np.int32)),
        ([True, False], torch.int8, np.array([1, 0], np.int8)),
        (np.array([1.0, 2.0]), torch.float32, np.array([1, 2], np.float32)),
        (np.array([300]), torch.int8, np.array([44], np.int8)),
    ],
    ids=repr,
)
def test_tensor_converts_to_the_given_element_type(
    data: object, dtype: torch.dtype, expected: np.ndarray
) -> None:
    values = on_a_rank(lambda: torch.tensor(data, dtype=dtype).numpy())
    np.testing.assert_array_equal(values, expected)
    assert values.dtype == expected.dtype


def test_tensor_copies_a_tensor_to_another_placement() -> None:
    def program() -> tuple[Any, int]:
        source = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float16)
        copy = torch.tensor(source, dp=DPPolicy(pe="row_wise", num_cubes=1, num_pes=2))
        source[...] = 0
        return copy.numpy(), len(copy.shards)

    values, shards = on_a_rank(program)
    np.testing.assert_array_equal(values, np.array([[1, 2], [3, 4]], np.float16))
    assert (values.dtype, shards) == (np.float16, 2)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: torch.tensor(np.zeros(2, np.uint16)),
            TypeError,
            f"tensor(): dtype uint16 does not exist on this hardware; pass dtype, one of {TYPES}",
        ),
        (
            lambda: torch.tensor(np.zeros(2, ">f4")),
            TypeError,
            f"tensor(): dtype >f4 does not exist on this hardware; pass dtype, one of {TYPES}",
        ),
        (lambda: torch.tensor("abc"), TypeError, "Could not infer dtype of str"),
        (lambda: torch.tensor(None), TypeError, "Could not infer dtype of NoneType"),
        (lambda: torch.tensor([1j]), TypeError, "Could not infer dtype of complex"),
        (
            lambda: torch.tensor([1 << 63]),
            RuntimeError,
            "value 9223372036854775808 cannot be converted to type int64 without overflow",
        ),
        (
            lambda: torch.tensor([1.0, 200.0], dtype=torch.int8),
            RuntimeError,
            "value 200.0 cannot be converted to type int8 without overflow",
        ),
        (
            lambda: torch.tensor([1], dtype="float32"),
            TypeError,
            (
                "tensor(): argument 'dtype' must be torch.dtype, not str 'float32'; did you mean "
                "torch.float32?"
            ),
        ),
        (
            lambda: torch.zeros(2, dtype="float32"),
            TypeError,
            (
                "zeros(): argument 'dtype' must be torch.dtype, not str 'float32'; did you mean "
                "torch.float32?"
            ),
        ),
        (
            lambda: torch.empty(2, dtype="f8"),
            TypeError,
            f"empty(): argument 'dtype' must be torch.dtype, not str 'f8'; known: {TYPES}",
        ),
        (
            lambda: torch.ones(2, dtype=np.float16),
            TypeError,
            "ones(): argument 'dtype' must be torch.dtype, not type; did you mean torch.float16?",
        ),
        (
            lambda: torch.full((2,), 1, dtype=7),
            TypeError,
            f"full(): argument 'dtype' must be torch.dtype, not int; known: {TYPES}",
        ),
        (
            lambda: torch.full((2,), "1"),
            TypeError,
            "full(): argument 'fill_value' (position 2) must be Number, not str",
        ),
        (
            lambda: torch.full(2, float("nan"), dtype=torch.int32),
            RuntimeError,
            "value nan cannot be converted to type int32 without overflow",
        ),
        (
            lambda: torch.zeros("23"),
            TypeError,
            "zeros(): argument 'size' must be tuple of ints, not str",
        ),
        (
            lambda: torch.zeros(2, 3.0),
            TypeError,
            "zeros(): argument 'size' must be tuple of ints, not float",
        ),
        (
            lambda: torch.zeros(2, dp="replicate"),
            TypeError,
            "zeros(): argument 'dp' must be torch.DPPolicy or torch.tiled_row_major(...), not str",
        ),
        (
            lambda: torch.zeros(2, 2, dp=torch.blocked_row_major(1, 1)),
            TypeError,
            (
                "zeros(): argument 'dp' must be torch.DPPolicy or torch.tiled_row_major(...), not "
                "torch.blocked_row_major(...), which orders the elements of a shard: "
                "layout=torch.blocked_row_major(...)"
            ),
        ),
        (
            lambda: torch.from_numpy(np.zeros((2, 2)), layout=torch.tiled_column_major(1, 1)),
            TypeError,
            (
                "from_numpy(): argument 'layout' must be torch.blocked_row_major(...), "
                "torch.blocked_column_major(...) or None, not torch.tiled_column_major(...), "
                "which deals tiles to PEs: dp=torch.tiled_column_major(...)"
            ),
        ),
        (
            lambda: torch.zeros(2, 2, layout="stored"),
            TypeError,
            (
                "zeros(): argument 'layout' must be torch.blocked_row_major(...), "
                "torch.blocked_column_major(...) or None, not str"
            ),
        ),
        (lambda: torch.from_numpy([1.0]), TypeError, "expected np.ndarray (got list)"),
        (
            lambda: torch.from_numpy(np.array(["a"])),
            TypeError,
            (
                "dtype <U1 does not exist on this hardware; convert to one of float16, bfloat16, "
                "float32, int8, int32, int64, uint8, bool, float64, float8_e4m3fn, float8_e5m2"
            ),
        ),
    ],
)
def test_what_a_constructor_refuses_it_names(
    make: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        on_a_rank(make)


def test_a_ragged_sequence_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^tensor\(\): the sequence is ragged: "):
        on_a_rank(lambda: torch.tensor([[1], [1, 2]]))


def test_an_attribute_that_a_tensor_lacks_names_the_nearest() -> None:
    def program() -> None:
        torch.zeros(2).copy  # noqa: B018

    message = r"^kernbench's Tensor has no copy; did you mean 'copy_'\?$"
    with pytest.raises(AttributeError, match=message):
        on_a_rank(program)
