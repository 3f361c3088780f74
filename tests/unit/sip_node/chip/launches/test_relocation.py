"""The blocks of a launch with other tensors."""

import pytest

from runtime.core.requests import Extent
from runtime.core.trace import Operand
from sip_node.chip.host.commands import ExtentRun
from sip_node.chip.launch_keys import NotRepeated
from sip_node.chip.launches.relocation import BlockUse, Relocation
from sip_node.chip.pe.mmu import PeMmu

NODE_BYTES = 1 << 20


def mapped(*extents: tuple[int, int, str]) -> PeMmu:
    """A page table with tensors of 4 KiB: (virtual address, physical address, name)."""
    mmu = PeMmu()
    for virtual, physical, name in extents:
        mmu.map(ExtentRun([Extent(virtual=virtual, physical=physical, nbytes=4096, tensor=name)]))
    return mmu


MMU = mapped((0, 0x10000, "x"), (8192, 0x20000, "y"), (16384, 0x30100, "z"), (24576, 1 << 21, "w"))
USES = [
    BlockUse(0, 0, Operand(0x10040, (64,), "u8")),
    BlockUse(1, -1, Operand(0x20000, (32,), "u8")),
]


def relocation(uses: list[BlockUse] = USES) -> Relocation:
    return Relocation([(0, 8192)], [MMU], [uses], lambda address: (0, address // NODE_BYTES))


def test_blocks_move_with_the_pointers_to_their_tensors() -> None:
    assert relocation().moved([(0, 8192)]) == (0, 0)
    assert relocation().moved([(16384, 8192)]) == (0x20100, 0)
    assert relocation().moved([(8192, 16384)]) == (0x10000, 0x10100)
    assert relocation().by_memory((0x20100, 0)) == {0: {0x10000: 0x20100, 0x20000: 0}}


@pytest.mark.parametrize(
    "addresses",
    [(24576, 8192), (4096 - 64, 8192), (32768, 8192), (8192 - 64, 8192)],
    ids=["another-memory", "behind-the-tensor", "not-mapped", "overlapping"],
)
def test_blocks_that_are_not_served_alike_are_refused(addresses: tuple[int, int]) -> None:
    assert relocation().moved([addresses]) is None


def test_a_block_of_no_argument_is_refused() -> None:
    with pytest.raises(NotRepeated, match="no tensor of the arguments"):
        relocation([BlockUse(0, 0, Operand(0x30100, (64,), "u8"))])
