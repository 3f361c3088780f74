"""Whether a launch with other tensors fits a template."""

from types import SimpleNamespace
from typing import Any

from runtime.core.requests import Extent
from runtime.core.trace import Operand, OpRecord
from sip_node.chip.host.commands import ExtentRun
from sip_node.chip.launch_keys import LaunchKey
from sip_node.chip.launches.launch_template import MOST_PLACES, LaunchTemplate
from sip_node.chip.launches.relocation import Relocation
from sip_node.chip.pe.mmu import PeMmu
from tests.support.kept import kept

NODE_BYTES, EXTENT_BYTES, TCM = 1 << 20, 4096, 1 << 26


class Alike:
    """Servers or engines that are always as they were."""

    def is_alike(self, _: int) -> bool:
        return True


class Located:
    """Memories of 1 MiB, of which those from `TCM` on are local."""

    def is_external(self, address: int) -> bool:
        return address < TCM

    def locate(self, address: int) -> tuple[int, int]:
        return 0, address // NODE_BYTES


def map_at(mmu: PeMmu, virtual: int, physical: int) -> None:
    extent = Extent(virtual=virtual, physical=physical, nbytes=EXTENT_BYTES, tensor="x")
    mmu.map(ExtentRun([extent]))


def template(mmu: PeMmu) -> LaunchTemplate:
    """The template of a launch on one PE, which has loaded a block at address 0."""
    block = Operand(0x10040, (64,), "u8")
    load = OpRecord("pe_dma", "load", 0, 1, 0, 0, TCM, 64, (64,), "u8", inputs=(block,))
    records = kept([load])
    relocation = Relocation([(0,)], [(0, 0)], [mmu], records, Located())
    changes: Any = SimpleNamespace(servers=Alike(), engines=Alike(), slices={})
    absent: Any = None
    return LaunchTemplate(
        records=records,
        slots=(),
        relocation=relocation,
        numbers=absent,
        values=None,
        changes=changes,
        rows=None,
    )


def distances(of: LaunchTemplate, address: int) -> tuple[int, ...] | None:
    repetition = of.fits(LaunchKey((0,), (), ((address,),), (b"",)), 0)
    return None if repetition is None else repetition.distances


def test_the_blocks_of_a_launch_are_where_the_page_table_has_them_when_it_begins() -> None:
    mmu = PeMmu()
    map_at(mmu, 0, 0x10000)
    of = template(mmu)
    assert distances(of, 0) == (0,)
    map_at(mmu, 0, 0x30000)
    assert distances(of, 0) == (0x20000,)
    map_at(mmu, 0, NODE_BYTES)
    assert distances(of, 0) is None
    map_at(mmu, 0, 0x10000)
    assert distances(of, 0) == (0,)


def test_a_launch_fits_at_more_places_than_are_kept() -> None:
    mmu = PeMmu()
    for place in range(MOST_PLACES + 2):
        map_at(mmu, place * EXTENT_BYTES, 0x10000 + place * EXTENT_BYTES)
    of = template(mmu)
    for place in [*range(MOST_PLACES + 2), 0]:
        assert distances(of, place * EXTENT_BYTES) == (place * EXTENT_BYTES,)
