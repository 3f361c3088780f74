"""The values of records: what is computed, and what is refused."""

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import pytest

from runtime.core.trace import Operand, OpRecord
from sip_node.chip.launch_keys import NotRepeated
from sip_node.chip.launches.launch_values import LaunchValues, MemoryPlace
from sip_node.chip.memory.memory import Memory

TCM, REGISTERS, HBM = 0, 1 << 20, 1 << 30


def memories() -> tuple[Memory, Memory]:
    return Memory("tcm", 1 << 16, data=True), Memory("hbm", 1 << 16, data=True)


def values_of(records: Sequence[OpRecord], tcm: Memory, hbm: Memory) -> LaunchValues:
    def place_of(address: int) -> MemoryPlace | None:
        if address >= HBM:
            return MemoryPlace(hbm, HBM, is_local=False)
        return None if address >= REGISTERS else MemoryPlace(tcm, TCM, is_local=True)

    return LaunchValues(records, place_of)


def record(
    engine: str,
    name: str,
    times: tuple[int, int],
    address: int,
    inputs: tuple[Operand | float, ...],
) -> OpRecord:
    start_ps, end_ps = times
    return OpRecord(
        engine,
        name,
        start_ps,
        end_ps,
        0,
        0,
        address=address,
        nbytes=16,
        shape=(4,),
        dtype="f32",
        inputs=inputs,
    )


def block(address: int) -> Operand:
    return Operand(address, (4,), "f32")


LOAD = record("pe_dma", "load", (0, 10), TCM, (block(HBM),))
ADD = record("pe_math", "add", (10, 20), REGISTERS, (block(TCM), 1.5))
KEEP = record("pe_fetch_store", "store", (20, 25), TCM + 16, (block(REGISTERS),))
STORE = record("pe_dma", "store", (25, 40), HBM + 64, (block(TCM + 16),))


def test_records_are_computed_from_memory_to_memory() -> None:
    tcm, hbm = memories()
    values = values_of([LOAD, ADD, KEEP, STORE], tcm, hbm)
    for first in (0, 5):
        x = np.arange(first, first + 4, dtype=np.float32)
        hbm.write(0, x.tobytes())
        checksums = values.compute()
        result = (x + np.float32(1.5)).tobytes()
        assert hbm.read(64, 16) == result
        assert tcm.read(0, 32) == x.tobytes() + result
        assert checksums.tolist() == [crc32(x.tobytes())] + [crc32(result)] * 3


def test_a_number_of_an_operation_is_that_of_the_launch() -> None:
    tcm, hbm = memories()
    values = values_of([LOAD, ADD, KEEP, STORE], tcm, hbm)
    x = np.arange(4, dtype=np.float32)
    hbm.write(0, x.tobytes())
    for number in (1.5, -0.0, np.nan):
        values.set_number(1, 1, number)
        values.compute()
        assert hbm.read(64, 16) == (x + np.float32(number)).tobytes()


def on_other_pe(
    at: int, source: int = HBM, number: float = 1.5, start_ps: int = 0
) -> list[OpRecord]:
    """The records of a load, a sum and a store, as those above, with results from `at` on."""
    load = record("pe_dma", "load", (start_ps, start_ps + 10), TCM + at, (block(source),))
    times = start_ps + 10, start_ps + 20
    added = record("pe_math", "add", times, REGISTERS + at, (block(TCM + at), number))
    kept = record("pe_fetch_store", "store", times, TCM + at + 16, (block(REGISTERS + at),))
    return [load, added, kept]


@pytest.mark.parametrize("distance", [0, 128])
def test_equal_operations_have_their_own_values_where_their_blocks_move_apart(
    distance: int,
) -> None:
    tcm, hbm = memories()
    records = [LOAD, ADD, KEEP, *on_other_pe(256)]
    values = values_of(records, tcm, hbm)
    x = np.arange(64, dtype=np.float32)
    hbm.write(0, x.tobytes())
    for each in values.blocks([(3, 0)]):
        each.offset += distance
    values.compute()
    first = distance // 4
    assert tcm.read(16, 16) == (x[:4] + np.float32(1.5)).tobytes()
    assert tcm.read(272, 16) == (x[first : first + 4] + np.float32(1.5)).tobytes()


def test_a_block_that_was_written_between_two_loads_has_other_values() -> None:
    tcm, hbm = memories()
    over = record("pe_dma", "store", (25, 40), HBM, (block(TCM + 16),))
    values = values_of([LOAD, ADD, KEEP, over, *on_other_pe(256, start_ps=50)], tcm, hbm)
    x = np.arange(4, dtype=np.float32)
    hbm.write(0, x.tobytes())
    values.compute()
    assert tcm.read(272, 16) == (x + np.float32(3)).tobytes()


def test_operations_with_other_numbers_or_operands_have_other_values() -> None:
    tcm, hbm = memories()
    records = [LOAD, ADD, KEEP, *on_other_pe(256, number=2.5), *on_other_pe(512, HBM + 16)]
    values = values_of(records, tcm, hbm)
    x = np.arange(8, dtype=np.float32)
    hbm.write(0, x.tobytes())
    values.compute()
    assert tcm.read(272, 16) == (x[:4] + np.float32(2.5)).tobytes()
    assert tcm.read(528, 16) == (x[4:] + np.float32(1.5)).tobytes()


def test_memory_that_is_written_while_it_is_read_is_refused() -> None:
    late = record("pe_dma", "load", (30, 50), TCM + 32, (block(HBM + 64),))
    with pytest.raises(NotRepeated, match="written while it is used"):
        values_of([LOAD, ADD, KEEP, STORE, late], *memories())
    over = record("pe_dma", "store", (5, 40), HBM, (block(TCM),))
    with pytest.raises(NotRepeated, match="written while it is used"):
        values_of([LOAD, over], *memories())


def test_what_no_record_has_made_is_refused() -> None:
    with pytest.raises(NotRepeated, match="no operation of the launch has written"):
        values_of([ADD], *memories())
    backwards = record(
        "pe_math", "abs", (10, 20), REGISTERS, (Operand(TCM + 12, (4,), "f32", (-1,)),)
    )
    with pytest.raises(NotRepeated, match="backwards"):
        values_of([LOAD, backwards], *memories())
    with pytest.raises(NotRepeated, match="pe_ipcq"):
        values_of([LOAD, record("pe_ipcq", "send", (10, 20), TCM + 64, (block(TCM),))], *memories())
