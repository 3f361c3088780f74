"""The blocks of a launch with other tensors."""

import pytest
from msgspec.structs import replace

from runtime.core.requests import Extent
from runtime.core.trace import Operand, OpRecord
from sip_node.chip.host.commands import ExtentRun
from sip_node.chip.launch_keys import NotRepeated
from sip_node.chip.launches.relocation import Relocation
from sip_node.chip.pe.mmu import PeMmu
from tests.support.kept import kept

NODE_BYTES = 1 << 20


def mapped(*extents: tuple[int, int, str]) -> PeMmu:
    """A page table with tensors of 4 KiB: (virtual address, physical address, name)."""
    mmu = PeMmu()
    for virtual, physical, name in extents:
        mmu.map(ExtentRun([Extent(virtual=virtual, physical=physical, nbytes=4096, tensor=name)]))
    return mmu


MMU = mapped((0, 0x10000, "x"), (8192, 0x20000, "y"), (16384, 0x30100, "z"), (24576, 1 << 21, "w"))
LOADED, STORED = (Operand(address, (64,), "u8") for address in (0x10040, 0x20000))


class Located:
    """Memories of 1 MiB, of which those from 64 MiB on are TCM."""

    def is_external(self, address: int) -> bool:
        return address < 64 * NODE_BYTES

    def locate(self, address: int) -> tuple[int, int]:
        return 0, address // NODE_BYTES


def relocation(loaded: Operand = LOADED) -> Relocation:
    """The blocks of a load and a store of a PE; each has another block in TCM."""
    in_tcm = 64 * NODE_BYTES
    records = [
        OpRecord("pe_dma", "load", 0, 1, 2, 3, in_tcm, 64, (64,), "u8", inputs=(loaded,)),
        OpRecord(
            "pe_dma",
            "store",
            1,
            2,
            2,
            3,
            STORED.address,
            64,
            (64,),
            "u8",
            inputs=(replace(STORED, address=in_tcm),),
        ),
    ]
    return Relocation([(0, 8192)], [(2, 3)], [MMU], kept(records), Located())


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


@pytest.mark.parametrize("address", [0x30100, 0x11000 - 32], ids=["elsewhere", "past-the-end"])
def test_a_block_of_no_argument_is_refused(address: int) -> None:
    with pytest.raises(NotRepeated, match="no tensor of the arguments"):
        relocation(Operand(address, (64,), "u8"))
