"""Windows of tensors: `view` and its relatives share the memory, its name and its life."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import DPPolicy, tl, torch
from runtime.torch.tensors.tensor import Tensor
from tests.support.topologies import variant_text
from tests.support.world import simulate

TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)
"""Two cubes with two PEs."""
MATRIX = np.arange(8 * 6, dtype=np.int32).reshape(8, 6)
ROWS = DPPolicy(cube="row_wise", pe="row_wise")
COLUMNS = DPPolicy(cube="column_wise", num_pes=1)
FLAT = [DPPolicy(num_cubes=1, num_pes=1), ROWS, DPPolicy(), DPPolicy(cube="row_wise")]


def on_a_rank(program: Callable[[], Any], *, data: bool = True) -> Any:
    return simulate(lambda rank: program(), 1, topology=TOPOLOGY, data=data).returned[0]


@pytest.mark.parametrize("policy", FLAT)
def test_a_view_has_the_elements_in_their_order_and_shares_them(policy: DPPolicy):
    def program() -> list[Any]:
        x = torch.from_numpy(MATRIX, dp=policy)
        views: list[Tensor] = [
            x.view(-1),
            x.view((2, -1, 3)),
            x.reshape(4, 12),
            x.flatten(),
            x.unsqueeze(1),
            x.unsqueeze(1).squeeze(1),
            x.view_as(torch.empty(6, 8)),
            x.narrow(0, 3, 4),
            x.split(3)[1],
            x.chunk(3)[2],
            x.unbind()[5],
        ]
        read = [view.numpy() for view in views]
        views[0][7] = -1
        x.narrow(0, 2, 1)[0, 0] = -2
        return [*read, x.numpy()]

    *read, written = on_a_rank(program)
    shapes = [(48,), (2, 8, 3), (4, 12), (48,), (8, 1, 6), (8, 6), (6, 8)]
    for part, shape in zip(read[:7], shapes, strict=True):
        np.testing.assert_array_equal(part, MATRIX.reshape(shape))
    for part, rows in zip(read[7:], [slice(3, 7), slice(3, 6), slice(6, 8), 5], strict=True):
        np.testing.assert_array_equal(part, MATRIX[rows])
    assert (written[1, 1], written[2, 0]) == (-1, -2)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(FLAT), st.integers(0, 48), st.data())
def test_a_window_of_a_window_is_the_part_that_numpy_cuts(
    policy: DPPolicy, start: int, data: st.DataObject
):
    length = data.draw(st.integers(0, 48 - start))
    inner = data.draw(st.integers(0, length))

    def program() -> list[Any]:
        window = torch.from_numpy(MATRIX, dp=policy).view(-1).narrow(0, start, length)
        part = window.narrow(0, inner, length - inner)
        copies = part.copies()
        for shard in part.shards:
            assert shard.spec.offset_bytes + shard.spec.nbytes <= part.nbytes
        return [window.numpy(), part.numpy(), len({cube * 2 + pe for cube, pe, _ in copies})]

    whole, part, pes = on_a_rank(program)
    np.testing.assert_array_equal(whole, MATRIX.reshape(-1)[start : start + length])
    np.testing.assert_array_equal(part, MATRIX.reshape(-1)[start + inner : start + length])
    assert pes <= 4


def test_the_shards_of_a_window_are_the_parts_of_those_of_the_tensor():
    def program() -> list[Any]:
        x = torch.from_numpy(MATRIX, dp=ROWS)
        window = x.view(-1).narrow(0, 6, 30)
        assert window.address == x.address + 24
        assert window.name == x.name
        rows = x.narrow(0, 1, 4)
        return [
            [(s.spec.cube, s.spec.pe, s.spec.offset_bytes, s.spec.nbytes) for s in window.shards],
            [part.tolist() for _, _, part in window.copies()],
            [shard.spec.spans for shard in rows.shards],
            [shard.spec.spans for shard in x.view(-1).narrow(0, 6, 30).view(5, 6).shards],
            [shard.spec.spans for shard in x.view(-1).narrow(0, 7, 30).view(5, 6).shards],
        ]

    layout, parts, spans, rows, cut = on_a_rank(program)
    # Two rows of 6 elements of 4 bytes on each PE.
    assert layout == [(0, 0, 0, 24), (0, 1, 24, 48), (1, 0, 72, 48)]
    assert parts == [list(range(6, 12)), list(range(12, 24)), list(range(24, 36))]
    assert spans == [((0, 1), (0, 6)), ((1, 3), (0, 6)), ((3, 4), (0, 6))]
    assert rows == [((0, 1), (0, 6)), ((1, 3), (0, 6)), ((3, 5), (0, 6))]
    # A part that is no block of the window has one span, that of the flattened window.
    assert cut == [((0, 1), (0, 5)), ((5, 17),), ((17, 29),), ((4, 5), (5, 6))]


def test_a_window_of_a_replicated_tensor_is_replicated_and_written_everywhere():
    def program() -> list[Any]:
        x = torch.from_numpy(MATRIX, dp=DPPolicy())
        x.narrow(0, 2, 3)[...] = 9
        return [part[1:6, 0].tolist() for _, _, part in x.copies()]

    assert on_a_rank(program) == [[6, 9, 9, 9, 30]] * 4


def test_bytes_are_read_as_another_type():
    def program() -> list[Any]:
        x = torch.from_numpy(np.arange(8, dtype=np.float32).reshape(2, 4))
        halves = x.view(torch.float16)
        words = x.view(torch.int32).numpy()
        part = x.view(torch.int8, offset=3, numel=6)
        part[...] = 1
        rest = x.view(torch.int32, 16)
        return [halves.shape, words, x.numpy(), rest.shape, rest.dtype, part.name == x.name]

    halves, words, written, rest, dtype, same = on_a_rank(program)
    expected = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(words, expected.view(np.int32))
    expected.reshape(-1).view(np.int8)[3:9] = 1
    np.testing.assert_array_equal(written, expected)
    assert (halves, rest, dtype, same) == ((2, 8), (4,), torch.int32, True)


def test_a_kernel_on_a_window_runs_where_its_elements_are():
    def fill(x: tl.Pointer, numel: int) -> None:
        tl.store(x, tl.full(numel, tl.program_id(0) + 10.0, torch.float32))

    def program() -> list[Any]:
        x = torch.zeros(16, dp=ROWS)
        torch.launch("fill", fill, x.narrow(0, 4, 2), 2)
        return x.numpy().tolist()

    assert on_a_rank(program) == [0.0] * 4 + [11.0] * 2 + [0.0] * 10


def test_a_window_keeps_the_memory_alive():
    def program() -> bool:
        window = torch.ones(100).view(10, 10)
        other = torch.zeros(100)
        return bool((window.numpy() == 1).all()) and window.address != other.address

    assert on_a_rank(program)


def test_axes_of_length_1_are_added_in_every_placement():
    def program() -> list[Any]:
        x = torch.from_numpy(MATRIX, dp=COLUMNS)
        return [x.unsqueeze(0).numpy(), x.unsqueeze(2).squeeze().numpy(), x.view(8, 6).numpy()]

    for part, shape in zip(on_a_rank(program), [(1, 8, 6), (8, 6), (8, 6)], strict=True):
        np.testing.assert_array_equal(part, MATRIX.reshape(shape))


@pytest.mark.parametrize(
    ("call", "error", "problem"),
    [
        (
            lambda x: x.view(5, 5),
            RuntimeError,
            "shape '[5, 5]' is invalid for input of size 48",
        ),
        (lambda x: x.view(-1, 5), RuntimeError, "shape '[-1, 5]' is invalid for input of size 48"),
        (lambda x: x.view(-1, -1), RuntimeError, "only one dimension can be inferred"),
        (lambda x: x.view(-2, 24), RuntimeError, "invalid shape dimension -2"),
        (lambda x: x.view(2.0), TypeError, "view(): argument 'size' must be tuple of ints"),
        (lambda x: x.unsqueeze(4), IndexError, "expected to be in range of [-3, 2], but got 4"),
        (lambda x: x.squeeze(2), IndexError, "expected to be in range of [-2, 1], but got 2"),
        (lambda x: x.flatten(1, 0), RuntimeError, "flatten() has invalid args"),
        (
            lambda x: x.narrow(0, 3, 6),
            RuntimeError,
            "start (3) + length (6) exceeds dimension size (8).",
        ),
        (lambda x: x.narrow(0, 9, 0), IndexError, "start out of range"),
        (lambda x: x.narrow(1, 0, 2), RuntimeError, "the part has gaps in memory"),
        (lambda x: x.split([3, 4]), RuntimeError, "sum exactly to 8"),
        (lambda x: x.split(-1), RuntimeError, "split_size=-1"),
        (lambda x: x.chunk(0), RuntimeError, "greater than 0, got: 0"),
        (
            lambda x: x.view(torch.float32, 2),
            RuntimeError,
            "divisible by 4 bytes to view the tensor as torch.float32, but got 2 bytes",
        ),
        (
            lambda x: x.view(torch.float32, 200),
            RuntimeError,
            "no greater than the tensor's length (192 bytes), but got 200",
        ),
        (
            lambda x: x.view(torch.float32, 184, 3),
            RuntimeError,
            "requested length 12 bytes (3 elements) after the offset 184 exceeds the tensor of 192",
        ),
        (
            lambda x: x.view(-1).view(torch.int8).narrow(0, 0, 3).view(torch.float16),
            RuntimeError,
            "self.size(-1) must be divisible by 2 to view torch.int8 as torch.float16",
        ),
    ],
)
def test_a_view_that_does_not_exist_is_refused(
    call: Callable[[Tensor], object], error: type[Exception], problem: str
):
    with pytest.raises(error, match=re.escape(problem)):
        on_a_rank(lambda: call(torch.from_numpy(MATRIX)))


@pytest.mark.parametrize("layout", [None, torch.blocked_row_major(2, 2)])
def test_a_tensor_out_of_row_major_order_has_no_windows(layout: Any):
    def program() -> None:
        x = torch.from_numpy(MATRIX, dp=COLUMNS, layout=layout)
        with pytest.raises(RuntimeError, match=r"^view size is not compatible with input tensor's"):
            x.view(-1)
        with pytest.raises(RuntimeError, match="is not in row-major order in its memory"):
            x.narrow(0, 0, 1)

    on_a_rank(program)


def test_an_element_does_not_lie_on_two_pes():
    def program() -> None:
        x = torch.zeros(4, 3, dtype=torch.int8, dp=ROWS)
        with pytest.raises(RuntimeError, match="an element of 4 bytes would lie on two PEs"):
            x.view(-1).view(torch.int32)

    on_a_rank(program)
