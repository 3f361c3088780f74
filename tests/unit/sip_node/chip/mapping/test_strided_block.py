"""Blocks with gaps, against numpy on the same bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.rng import seeded
from runtime.core.trace import Operand
from sip_node.chip.mapping.strided_block import (
    Layout,
    StridedBlock,
    is_packed,
    layout_of,
    nbytes_of,
    part_of,
)
from sip_node.chip.memory.memory import PAGE_BYTES, Memory


def test_a_block_without_gaps_is_bytes_in_one_piece() -> None:
    assert layout_of(Operand(0, (4, 8), "f16")) == Layout(64, None)
    assert layout_of(Operand(0, (4, 8), "f16", (8, 1))) == Layout(64, None)
    assert layout_of(Operand(0, (1, 8), "f32", (100, 1))) == Layout(32, None)
    assert layout_of(Operand(0, (), "f32")) == Layout(4, None)


def test_a_block_with_gaps_and_any_axes_is_rows_at_one_pitch() -> None:
    assert layout_of(Operand(0, (4, 8), "f16", (20, 1))) == Layout(64, StridedBlock(16, 40))
    assert layout_of(Operand(0, (2, 2, 8), "f16", (40, 20, 1))) == Layout(64, StridedBlock(16, 40))
    assert layout_of(Operand(0, (4, 1, 2, 4), "i8", (20, 7, 4, 1))) == Layout(
        32, StridedBlock(8, 20)
    )
    assert layout_of(Operand(0, (4, 1), "f32", (20, 1))) == Layout(16, StridedBlock(4, 80))


def test_a_block_with_a_second_pitch_is_planes_of_rows() -> None:
    assert layout_of(Operand(0, (3, 2, 4), "f16", (100, 10, 1))) == Layout(
        48, StridedBlock(8, 20, 2, 200)
    )
    # Transposed: in the order of its elements, each is a row, and a row of the matrix is a plane.
    assert layout_of(Operand(0, (3, 2), "f32", (1, 10))) == Layout(24, StridedBlock(4, 40, 2, 4))


@pytest.mark.parametrize("strides", [(1000, 100, 10, 1), (100, -8, 4, 1), (400, 100, 10, 2)])
def test_other_blocks_are_refused_by_name(strides: tuple[int, ...]) -> None:
    with pytest.raises(
        ValueError, match=r"with strides .* is not planes of rows at two pitches, as a DMA moves"
    ):
        layout_of(Operand(0, (2, 2, 2, 3), "f16", strides))


def test_parts_of_a_block_without_gaps_keep_its_type_where_whole_elements_allow() -> None:
    block = Operand(1000, (4, 8), "f32")
    assert part_of(block, 0, 128) is block
    assert part_of(block, 16, 8) == Operand(1016, (2,), "f32")
    assert part_of(block, 6, 5) == Operand(1006, (5,), "u8")
    assert nbytes_of(block) == 128
    assert is_packed(block)
    assert not is_packed(Operand(0, (2, 2), "f32", (4, 1)))


rows_of_a_memory = st.tuples(st.integers(1, 40), st.integers(1, 300), st.integers(0, 5000))
"""(rows, bytes of each, gap behind each)"""


@given(rows_of_a_memory, st.integers(0, 2 * PAGE_BYTES), st.data())
def test_rows_are_read_and_written_as_numpy_does(
    shape: tuple[int, int, int], offset: int, data: st.DataObject
) -> None:
    count, row_bytes, gap = shape
    rows, total = StridedBlock(row_bytes, row_bytes + gap), count * row_bytes
    begin = data.draw(st.integers(0, total - 1))
    nbytes = data.draw(st.integers(1, total - begin))
    memory = Memory("hbm", 8 * PAGE_BYTES, data=True)
    content = seeded(count, row_bytes, gap).randbytes(offset + count * rows.pitch)
    memory.write(0, content)
    whole = np.frombuffer(bytearray(content), np.uint8)
    model = whole[offset:].reshape(count, rows.pitch)[:, :row_bytes]
    assert memory.read_rows(offset, rows, begin, nbytes) == model.tobytes()[begin : begin + nbytes]

    new = seeded(nbytes).randbytes(nbytes)
    memory.write_rows(offset, rows, begin, new)
    packed = bytearray(model.tobytes())
    packed[begin : begin + nbytes] = new
    model[...] = np.frombuffer(packed, np.uint8).reshape(model.shape)
    assert memory.read(0, len(content)) == whole.tobytes()


@given(
    st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(1, 40)),
    st.permutations((0, 1, 2)),
    st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 700)),
    st.data(),
)
def test_planes_are_read_and_written_as_numpy_does(
    shape: tuple[int, int, int],
    order: list[int],
    gaps: tuple[int, int, int],
    data: st.DataObject,
) -> None:
    # The axes lie in memory in any order, with gaps behind each. Without elements that follow each
    # other, two pitches are used up by two axes.
    shape = shape if order[0] == 2 else (1, *shape[1:])
    strides, span = [0, 0, 0], 1
    for axis, gap in zip(order, gaps, strict=True):
        strides[axis] = span if axis == order[0] else span + gap
        span = strides[axis] * shape[axis]
    block = Operand(0, shape, "f16", tuple(strides))
    nbytes, rows = layout_of(block)
    offset = data.draw(st.integers(0, PAGE_BYTES))
    size = offset + 2 * (1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)))
    content = bytearray(seeded(*shape, *strides).randbytes(size))
    memory = Memory("hbm", 16 * PAGE_BYTES, data=True)
    memory.write(0, content)
    model = np.ndarray(shape, np.uint16, content, offset, [2 * stride for stride in strides])
    if rows is None:
        assert memory.read(offset, nbytes) == model.tobytes()
        return
    assert offset + rows.extent(nbytes) == size
    begin = data.draw(st.integers(0, nbytes - 1))
    count = data.draw(st.integers(1, nbytes - begin))
    packed = bytearray(model.tobytes())
    assert memory.read_rows(offset, rows, begin, count) == packed[begin : begin + count]
    packed[begin : begin + count] = new = seeded(count).randbytes(count)
    memory.write_rows(offset, rows, begin, new)
    model[...] = np.frombuffer(packed, np.uint16).reshape(shape)
    assert memory.read(0, size) == content


def test_rows_of_a_memory_that_was_never_written_are_zero() -> None:
    memory = Memory("hbm", 1 << 30, data=True)
    assert memory.read_rows(1 << 20, StridedBlock(100, 70_000), 50, 400) == bytes(400)
    assert list(memory.contents()) == []


def test_without_data_no_rows_are_read() -> None:
    assert Memory("hbm", 1 << 30, data=False).read_rows(0, StridedBlock(16, 32), 0, 64) == b""
