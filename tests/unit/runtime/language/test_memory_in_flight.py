"""Blocks that share bytes, against the sets of their addresses."""

from hypothesis import assume, given
from hypothesis import strategies as st

from runtime.core.dtypes import float32, int8
from runtime.language.memory_in_flight import MemoryInFlight, MemoryUse, UsedBlock
from runtime.language.value import Pointer, Ref, row_major


def bytes_of(block: UsedBlock) -> set[int]:
    offsets = {0} if 0 not in block.shape else set[int]()
    for length, stride in zip(block.shape, block.strides, strict=True):
        offsets = {offset + i * stride for offset in offsets for i in range(length)}
    item = block.pointer.dtype.itemsize
    return {block.pointer.address + o * item + byte for o in offsets for byte in range(item)}


@st.composite
def blocks(draw: st.DrawFn) -> UsedBlock:
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=0, max_size=3)))
    strides, span = list[int](), 1
    for length in reversed(shape):
        strides.append(span + draw(st.integers(0, 3)))
        span = strides[-1] * max(length - 1, 0) + span
    dtype = draw(st.sampled_from([float32, int8]))
    return UsedBlock(Pointer(draw(st.integers(0, 60)), dtype), shape, tuple(reversed(strides)))


@given(blocks(), blocks())
def test_blocks_share_bytes_as_the_sets_of_their_addresses_do(a: UsedBlock, b: UsedBlock) -> None:
    assert a.shares_bytes(b) == b.shares_bytes(a) == bool(bytes_of(a) & bytes_of(b))


@given(st.integers(0, 12), st.integers(1, 8), st.integers(1, 8), st.integers(8, 12))
def test_column_panels_of_a_matrix_share_bytes_where_their_columns_do(
    column: int, width: int, other_width: int, pitch: int
) -> None:
    assume(column + other_width <= pitch)
    a = UsedBlock(Pointer(0, int8), (5, width), (pitch, 1))
    b = UsedBlock(Pointer(2 * pitch + column, int8), (5, other_width), (pitch, 1))
    assert a.shares_bytes(b) == bool(bytes_of(a) & bytes_of(b))


def test_a_blocked_matrix_lies_without_gaps() -> None:
    matrix = Ref(Pointer(16, float32), (4, 6), (6, 1), blocked=True)
    block = UsedBlock.of(matrix)
    assert (block.extent, block.strides) == ((16, 112), row_major((4, 6)))


def test_a_command_conflicts_until_the_operation_was_waited_for() -> None:
    memory, operation = MemoryInFlight(), object()
    near, far = (UsedBlock(Pointer(at, int8), (8,), (1,)) for at in (0, 8))
    memory.begin(operation, MemoryUse("tl.store_async", "kernel.py:3", writes=(near,)))
    assert memory.problem("tl.load", reads=(far,)) is None
    assert memory.line_of(operation) == "kernel.py:3"
    assert memory.problem("tl.load", reads=(near,)) == (
        "tl.load reads bytes of memory that the tl.store_async at kernel.py:3 writes; that is in "
        "flight until the kernel waits for it, and either may come first: tl.wait for it before"
    )
    memory.end(operation)
    assert memory.line_of(operation) == ""
    assert memory.problem("tl.load", reads=(near,)) is None
    memory.begin(operation, MemoryUse("tl.load_async", "kernel.py:4", reads=(near,)))
    assert memory.problem("tl.load", reads=(near,)) is None
    assert "writes bytes of memory that the tl.load_async at kernel.py:4 reads" in str(
        memory.problem("tl.store", writes=(near,))
    )
