"""The last writers of bytes, against a list with an entry for each byte."""

from random import Random

import pytest

from runtime.core.trace import Operand
from sip_node.chip.launch_keys import NotRepeated
from sip_node.chip.launches.written_bytes import WrittenMemory


def test_bytes_are_those_of_their_last_writer() -> None:
    draw, written = Random(0), WrittenMemory()
    expected: list[tuple[int, int] | None] = [None] * 200
    for number in range(300):
        rows, columns, pitch = draw.randint(1, 4), draw.randint(1, 9), draw.randint(9, 14)
        block = Operand(draw.randrange(130), (rows, columns), "u8", (pitch, 1))
        written.write(block, number)
        for row in range(rows):
            for column in range(columns):
                expected[block.address + row * pitch + column] = number, row * columns + column
        begin, nbytes = draw.randrange(150), draw.randint(1, 40)
        part = expected[begin : begin + nbytes]
        read = Operand(begin, (nbytes,), "u8")
        if None in part:
            with pytest.raises(NotRepeated):
                written.read(read)
            continue
        found = [
            (each.number, each.offset + index)
            for each in written.read(read)
            for index in range(each.end - each.begin)
        ]
        assert found == part
        assert written.touched(read) == {each[0] for each in part if each}
    assert written.writers() == {each[0] for each in expected if each}


def test_gaps_between_the_rows_of_an_operand_need_no_writer() -> None:
    written = WrittenMemory()
    rows = Operand(0, (3, 4), "u8", (10, 1))
    written.write(rows, 7)
    assert [(each.begin, each.end, each.offset) for each in written.read(rows)] == [
        (0, 4, 0),
        (10, 14, 4),
        (20, 24, 8),
    ]
    with pytest.raises(NotRepeated, match="no operation of the launch has written"):
        written.read(Operand(0, (3, 5), "u8", (10, 1)))
