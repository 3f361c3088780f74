import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip_node.chip.memory.memory import PAGE_BYTES, Memory

SIZE = 3 * PAGE_BYTES

writes = st.lists(
    st.tuples(st.integers(0, SIZE - 1), st.binary(min_size=1, max_size=300)), max_size=6
)


@given(writes)
def test_a_memory_holds_what_a_byte_array_would(pieces: list[tuple[int, bytes]]) -> None:
    memory, model = Memory("hbm", SIZE, data=True), bytearray(SIZE)
    for offset, data in pieces:
        cut = data[: SIZE - offset]
        memory.write(offset, cut)
        model[offset : offset + len(cut)] = cut
    assert memory.read(0, SIZE) == bytes(model)
    assert memory.read(PAGE_BYTES - 10, 20) == bytes(model[PAGE_BYTES - 10 : PAGE_BYTES + 10])


def test_a_write_across_pages_is_one_piece() -> None:
    memory = Memory("hbm", SIZE, data=True)
    data = bytes(range(1, 101))
    memory.write(PAGE_BYTES - 50, data)
    assert memory.read(PAGE_BYTES - 50, 100) == data


def test_contents_are_the_pages_that_are_not_all_zero() -> None:
    memory = Memory("hbm", SIZE, data=True)
    memory.write(2 * PAGE_BYTES + 7, b"\x01")
    memory.write(5, bytes(20))
    [(offset, content)] = memory.contents()
    assert (offset, len(content), content[7]) == (2 * PAGE_BYTES, PAGE_BYTES, 1)


def test_a_memory_allocates_only_pages_that_are_written() -> None:
    memory = Memory("hbm", 6 << 30, data=True)
    memory.write((6 << 30) - 4, b"last")
    assert memory.read((6 << 30) - 4, 4) == b"last"
    assert len(list(memory.contents())) == 1


@pytest.mark.parametrize("offset", [-1, SIZE - 3, SIZE])
def test_nothing_lies_outside(offset: int) -> None:
    memory = Memory("sram", SIZE, data=True)
    with pytest.raises(AssertionError, match="sram: write of 4 bytes"):
        memory.write(offset, b"four")
    with pytest.raises(AssertionError, match="sram: read of 4 bytes"):
        memory.read(offset, 4)


def test_without_data_nothing_is_kept_and_nothing_read() -> None:
    memory = Memory("hbm", SIZE, data=False)
    memory.write(0, b"")
    assert memory.read(0, 100) == b""
    assert list(memory.contents()) == []
