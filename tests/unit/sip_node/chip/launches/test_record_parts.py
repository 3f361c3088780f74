"""The parts of records: which blocks move together, and which are in none."""

from msgspec.structs import replace

from runtime.core.trace import Operand, OpRecord
from tests.support.kept import entered, kept

# Behind that, which skips a test where there is no core.
from sip_node.chip.launches.record_parts import (  # isort: skip
    addresses_before,
    assigned,
    pes_of,
    uses_of,
)

BLOCK = Operand(0x100, (4,), "f32")
LOAD = OpRecord("pe_dma", "load", 5, 9, 0, 1, 0x40, 16, (4,), "f32", inputs=(BLOCK,))
ADD = OpRecord("pe_math", "add", 9, 12, 0, 1, 0x40, 16, (4,), "f32", inputs=(0.5, BLOCK))
STORE = replace(LOAD, name="store", cube=1, address=0x180, inputs=(replace(BLOCK, address=0x40),))
MEMORY = [(0x100, 0x200)]
"""The memory in which blocks of both PEs are."""


def test_blocks_move_with_the_range_of_their_first_byte() -> None:
    of = kept([LOAD, ADD, STORE])
    # The load of PE 1 covers 16 bytes from 0x100 on, the store of cube 1 those from 0x180 on.
    assert assigned(of, MEMORY, "pe_dma") == [(0, 0, 1, 0x100, 0x110), (0, 1, 1, 0x180, 0x190)]
    of.move((0x1000, -0x80))
    assert entered(of)[1] == [
        replace(LOAD, inputs=(replace(BLOCK, address=0x1100),)),
        ADD,
        replace(STORE, address=0x100),
    ]
    assert uses_of(of) == [[(0, 0)], [(2, -1)]]


def test_blocks_of_all_pes_and_engines_are_in_ranges_of_no_pe() -> None:
    of = kept([LOAD, ADD, STORE])
    ranges = [(0x40, 0x48), (0x104, 0x108)]
    # The first byte decides; a block may end behind its range.
    assert assigned(of, ranges, "") == [(0, 0, 0, 0x40, 0x50)]
    assert uses_of(of) == [[(0, -1), (1, -1), (2, 0)]]


def test_blocks_that_are_in_no_range_have_their_addresses() -> None:
    of = kept([LOAD, ADD, STORE])
    assigned(of, [(0x100, 0x110)], "")
    assert addresses_before(of, 0, "pe_dma") == {0x40, 0x180}
    assert addresses_before(of, 1, "pe_dma") == {0x40, 0x100, 0x180}
    assert addresses_before(of, 1, "pe_math") == {0x40, 0x100}


def test_the_pes_of_an_engine_are_those_of_its_records() -> None:
    of = kept([LOAD, ADD, STORE])
    assert pes_of(of, "pe_dma") == {(0, 1), (1, 1)}
    assert pes_of(of, "pe_math") == {(0, 1)}
