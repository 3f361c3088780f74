"""Methods of tensors: fills, copies and conversions on the device, and what the host reads."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime import DPPolicy, torch
from runtime.torch.tensors.tensor import Tensor
from tests.support.topologies import variant_text
from tests.support.world import simulate

TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)
"""Two cubes with two PEs."""
MATRIX = np.arange(64 * 48, dtype=np.float32).reshape(64, 48)
PLACEMENTS = {
    "one PE": DPPolicy(num_cubes=1, num_pes=1),
    "rows": DPPolicy(cube="row_wise", pe="row_wise"),
    "columns": DPPolicy(cube="column_wise", num_pes=1),
    "replicas": DPPolicy(),
    "tiles": torch.tiled_row_major(20, 20),
}


def on_a_rank(program: Callable[[], Any], *, data: bool = True) -> Any:
    return simulate(lambda rank: program(), 1, topology=TOPOLOGY, data=data).returned[0]


def engines(program: Callable[[], Any], engine: str, name: str = "") -> int:
    return len(simulate(lambda rank: program(), 1, topology=TOPOLOGY).of(engine, name))


@pytest.mark.parametrize("placement", PLACEMENTS.values(), ids=PLACEMENTS)
def test_fills_and_clones_write_every_element_of_every_replica(placement: Any) -> None:
    def program() -> list[Any]:
        x = torch.from_numpy(MATRIX, dp=placement)
        copy = x.clone()
        x.fill_(2.5)
        filled = [part for _, _, part in x.copies()]
        return [copy.numpy(), copy.policy == x.policy, filled, x.zero_().numpy().any()]

    copy, same, filled, zero = on_a_rank(program)
    np.testing.assert_array_equal(copy, MATRIX)
    assert same
    assert all((part == 2.5).all() for part in filled)
    assert not zero


@pytest.mark.parametrize("target", PLACEMENTS.values(), ids=PLACEMENTS)
@pytest.mark.parametrize("source", PLACEMENTS.values(), ids=PLACEMENTS)
def test_a_tensor_is_copied_to_every_placement_and_type(source: Any, target: Any) -> None:
    def program() -> list[Any]:
        x = torch.from_numpy(MATRIX, dp=source)
        half = x.to(target, torch.float16)
        return [half.numpy(), x.to(target).numpy(), x.to(x.policy) is x, half.policy == target]

    half, moved, same, placed = on_a_rank(program)
    np.testing.assert_array_equal(half, MATRIX.astype(np.float16), strict=True)
    np.testing.assert_array_equal(moved, MATRIX, strict=True)
    assert (same, placed) == (True, True)


def test_copies_between_flat_tensors_stay_on_the_device() -> None:
    def program() -> None:
        x = torch.empty(64, 48, dp=PLACEMENTS["rows"])
        x.fill_(1)
        y = torch.empty(64, 48, dtype=torch.float16, dp=PLACEMENTS["one PE"])
        y.copy_(x)
        y.view(-1).narrow(0, 7, 100).copy_(x.view(-1).narrow(0, 1000, 100))
        y.clone().t()
        torch.ahbm.synchronize()

    assert engines(program, "host", "MemoryReadMsg") == 0
    assert engines(program, "host", "MemoryWriteMsg") == 0
    assert engines(program, "pe_dma", "store") > 0


def test_windows_that_overlap_are_copied_as_if_read_first() -> None:
    def program() -> list[Any]:
        x = torch.arange(8)
        x.narrow(0, 1, 7).copy_(x.narrow(0, 0, 7))
        return x.copy_(x).tolist()

    assert on_a_rank(program) == [0, 0, 1, 2, 3, 4, 5, 6]


def test_every_conversion_has_its_name() -> None:
    def program() -> list[Any]:
        x = torch.tensor([1.75, -2.5, 0.0, 300.0])
        made = [x.half(), x.bfloat16(), x.double(), x.int(), x.long(), x.char(), x.byte(), x.bool()]
        assert x.float() is x
        assert x.type_as(made[0]).dtype == x.to(made[0]).dtype == torch.float16
        return [(each.dtype, each.tolist()) for each in made]

    numbers = [1.75, -2.5, 0.0, 300.0]
    assert on_a_rank(program) == [
        (torch.float16, numbers),
        (torch.bfloat16, numbers),
        (torch.float64, numbers),
        (torch.int32, [1, -2, 0, 300]),
        (torch.int64, [1, -2, 0, 300]),
        (torch.int8, [1, -2, 0, 127]),
        (torch.uint8, [1, 0, 0, 255]),
        (torch.bool, [True, True, False, True]),
    ]


def test_a_transposed_matrix_is_a_copy() -> None:
    def program() -> list[Any]:
        rows = torch.from_numpy(MATRIX)
        columns = torch.from_numpy(MATRIX, dp=PLACEMENTS["columns"])
        t = rows.t()
        rows.zero_()
        return [t.numpy(), columns.T.numpy(), torch.arange(3).t().tolist()]

    t, of_columns, vector = on_a_rank(program)
    np.testing.assert_array_equal(t, MATRIX.T)
    np.testing.assert_array_equal(of_columns, MATRIX.T)
    assert vector == [0, 1, 2]


def test_tensors_are_joined_along_every_axis() -> None:
    parts = [MATRIX[:, :17], MATRIX[:, 17:18], MATRIX[:, 18:]]

    def program() -> list[Any]:
        x, y = torch.from_numpy(MATRIX), torch.from_numpy(MATRIX, dp=PLACEMENTS["columns"])
        pieces = [torch.from_numpy(np.ascontiguousarray(part)) for part in parts]
        joined = [torch.cat([x, y]), torch.cat(pieces, dim=1), torch.cat(pieces, -1)]
        joined += [torch.stack([x, y]), torch.stack([x, y], 1), torch.stack([x, y], -1)]
        assert [part.shape for part in torch.split(x, 40)] == [(40, 48), (24, 48)]
        assert len(torch.chunk(x, 3)) == 3
        return [each.numpy() for each in joined]

    both = [MATRIX, MATRIX]
    expected = [np.concatenate(both), MATRIX, MATRIX, *(np.stack(both, axis) for axis in (0, 1, 2))]
    for found, right in zip(on_a_rank(program), expected, strict=True):
        np.testing.assert_array_equal(found, right, strict=True)


def test_numbers_and_properties_are_those_of_pytorch() -> None:
    def program() -> list[Any]:
        x = torch.from_numpy(MATRIX)
        assert (x.size(), x.size(-1), x.dim(), x.ndim) == ((64, 48), 48, 2, 2)
        assert (x.stride(), x.stride(0), x.element_size()) == ((48, 1), 48, 4)
        assert (x.data_ptr(), x.is_contiguous(), x.requires_grad) == (x.address, True, False)
        assert x.contiguous() is x.detach() is x
        assert str(x.device) == "ahbm:0"
        assert x.to("ahbm") is x.to(torch.device("ahbm:0")) is x
        columns = torch.from_numpy(MATRIX, dp=PLACEMENTS["columns"])
        assert not columns.is_contiguous()
        np.testing.assert_array_equal(columns.contiguous().view(-1).numpy(), MATRIX.reshape(-1))
        one = torch.tensor([7], dtype=torch.int8)
        host = x.to("cpu", torch.float16)
        np.testing.assert_array_equal(host.cpu().numpy(), MATRIX.astype(np.float16), strict=True)
        return [one.item(), float(one), int(one), [5, 6, 7, 8][:one][-1], 3 in one, 7 in one]

    assert on_a_rank(program) == [7, 7.0, 7, 8, False, True]


READS: dict[str, Callable[[Tensor], object]] = {
    "asarray": np.asarray,
    "tolist": lambda x: x.tolist(),
    "list": list,
    "cpu": lambda x: x.cpu(),
    "in": lambda x: 5 in x,
    "array": np.array,
    "repr": repr,
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_the_whole_of_a_tensor_is_one_read(read: Callable[[Tensor], object]) -> None:
    def program() -> None:
        read(torch.from_numpy(MATRIX, dp=PLACEMENTS["one PE"]))

    assert engines(program, "host", "MemoryReadMsg") == 1


@pytest.mark.parametrize(
    ("call", "error", "problem"),
    [
        (
            lambda x: x.item(),
            RuntimeError,
            "a Tensor with 3 elements cannot be converted to Scalar",
        ),
        (float, ValueError, "only one element tensors can be converted to Python scalars"),
        (lambda x: [1][x], TypeError, "only integer tensors of a single element can be converted"),
        (lambda x: list(torch.tensor(1)), TypeError, "iteration over a 0-d tensor"),
        (lambda x: x.view(1, 1, 3).t(), RuntimeError, "<= 2 dimensions, but self is 3D"),
        (lambda x: x.to("ahbm:3"), RuntimeError, "invalid device ordinal 3: this rank owns SIP 0"),
        (lambda x: x.to("cuda"), RuntimeError, "Expected one of cpu, ahbm device type"),
        (lambda x: x.to(1.5), TypeError, "not float 1.5"),
        (lambda x: x.copy_([1, 2]), RuntimeError, "The size of the source (2,) must match"),
        (lambda x: torch.cat([]), RuntimeError, "expected a non-empty list of Tensors"),
        (lambda x: torch.cat([x, x.half()]), RuntimeError, "convert with x.to(dtype)"),
        (lambda x: torch.cat([x.view(1, 3), x.view(3, 1)]), RuntimeError, "except in dimension 0"),
        (lambda x: torch.stack([x, x.view(1, 3)]), RuntimeError, "to be equal size, but got (3,)"),
        (lambda x: np.asarray(x, copy=False), ValueError, "read as a copy"),
    ],
)
def test_what_a_method_refuses_it_names(
    call: Callable[[Tensor], object], error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=re.escape(problem)):
        on_a_rank(lambda: call(torch.tensor([1.0, 2.0, 3.0])))


def test_without_data_numbers_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"check torch\.ahbm\.has_data\(\)"):
        on_a_rank(lambda: torch.ones(1).clone().item(), data=False)
