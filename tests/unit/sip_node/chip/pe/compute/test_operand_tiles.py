"""A matrix in memory: the physical blocks of its tiles."""

from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from runtime.core.dtypes import float16
from runtime.core.requests import Extent
from runtime.language.value import Pointer, Ref, row_major
from runtime.model.tiles import blocked_offset
from sip_node.chip.host.commands import ExtentRun
from sip_node.chip.pe.compute.operand_tiles import Streamed
from sip_node.chip.pe.mmu import PeMmu
from sip_node.chip.store_order import StoreOrders
from sip_node.programs.kernel_faults import KernelFaults
from sip_node.programs.kernel_memory import KernelMemory
from tests.support.topologies import small

LENGTHS = st.integers(1, 9)
BASE, BYTES, FAR = 1 << 12, 1 << 12, 1 << 20


def memory_of(*cuts: int) -> KernelMemory:
    """A memory of extents that end at `cuts`, bytes behind `BASE`, each far behind the last."""
    mmu, starts = PeMmu(), sorted({0, *cuts})
    extents = [
        Extent(BASE + start, end - start, index * FAR + start, "a")
        for index, (start, end) in enumerate(zip(starts, [*starts[1:], BYTES], strict=True))
    ]
    mmu.map(ExtentRun(extents))
    return with_mmu(mmu)


def with_mmu(mmu: PeMmu) -> KernelMemory:
    """The memory of a kernel that runs alone on a PE."""
    chip = SimpleNamespace(topology=small(), store_orders=StoreOrders())
    pe = SimpleNamespace(chip=chip, tcm=SimpleNamespace(base=0), mmu=mmu)
    launch = SimpleNamespace(thread="kernels", stored=None)
    faults = KernelFaults("k", cast("Any", SimpleNamespace()))
    return KernelMemory(cast("Any", pe), cast("Any", launch), faults)


@given(LENGTHS, LENGTHS, LENGTHS, LENGTHS, st.integers(0, 3), st.booleans(), st.data())
def test_a_tile_has_the_blocks_to_which_it_is_translated_alone(
    rows: int, columns: int, height: int, width: int, gap: int, blocked: bool, data: st.DataObject
) -> None:
    pitch = columns + (0 if blocked else gap)
    cuts = data.draw(st.lists(st.integers(1, rows * pitch).map(lambda cut: 2 * cut), max_size=2))
    ref = Ref(Pointer(BASE, float16), (rows, columns), (pitch, 1), blocked)
    blocks = memory_of(*cuts).translate
    matrix = Streamed(ref, (height, width), blocks)
    for row in range(0, rows, height):
        for column in range(0, columns, width):
            ends = min(row + height, rows), min(column + width, columns)
            shape, strides = (ends[0] - row, ends[1] - column), ref.strides
            offset = row * pitch + column
            if blocked:
                offset, strides = blocked_offset(ref.shape, (height, width), row, column), None
            expected = blocks(ref.pointer + offset, shape, strides or row_major(shape))
            tile = matrix.at((row, ends[0]), (column, ends[1]))
            assert tile.pieces == expected
            assert (tile.form.shape, tile.form.nbytes) == (shape, 2 * shape[0] * shape[1])


def test_bytes_between_the_rows_of_a_matrix_need_not_be_mapped() -> None:
    mmu = PeMmu()
    mmu.map(ExtentRun([Extent(BASE, 8, 0, "a"), Extent(BASE + 16, 8, FAR, "a")]))
    memory = with_mmu(mmu)
    ref = Ref(Pointer(BASE, float16), (2, 4), (8, 1))
    [first, second] = Streamed(ref, (2, 4), memory.translate).at((0, 2), (0, 4)).pieces
    assert (first.address, second.address) == (0, FAR)
