import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.errors import PhysAddrError
from runtime.core.trace import NO_PE
from runtime.model.addresses import WIDE_ADDRESS_BITS, AddressMap, PhysAddr
from runtime.model.topology import Topology
from tests.support.topologies import small, variant

TOPOLOGIES = [
    variant(system__sips__count=1024, sip__cube_mesh={"w": 8, "h": 4}),
    variant(system__sips__count=256, sip__cube_mesh={"w": 8, "h": 4}),
    small(),
    variant(hbm__slice_gib=16),
]
MIB = 1 << 20


def encode(addresses: AddressMap, place: PhysAddr) -> int:
    """The factory that belongs to the resource, called with the fields of `place`."""
    if place.pe == NO_PE:
        return getattr(addresses, f"cube_{place.resource}_addr")(
            place.sip, place.cube, place.offset
        )
    return getattr(addresses, f"pe_{place.resource}_addr")(
        place.sip, place.cube, place.pe, place.offset
    )


@st.composite
def places(draw: st.DrawFn) -> tuple[Topology, PhysAddr]:
    topology = draw(st.sampled_from(TOPOLOGIES))
    pe_sizes = {
        "hbm": topology.hbm_slice_bytes,
        "tcm": topology.tcm_bytes,
        "ipcq": MIB,
        "scratchpad": MIB,
        "regfile": 64 << 10,
        "vectors": 64 * MIB,
    }
    cube_sizes = {"sram": topology.sram_bytes, "mcpu": 16 * MIB}
    resource = draw(st.sampled_from([*pe_sizes, *cube_sizes]))
    sip, cube = draw(st.integers(0, topology.sips - 1)), draw(st.integers(0, topology.cubes - 1))
    pe = draw(st.integers(0, topology.pes_per_cube - 1)) if resource in pe_sizes else NO_PE
    offset = draw(st.integers(0, (pe_sizes | cube_sizes)[resource] - 1))
    return topology, PhysAddr(sip, cube, resource, pe, offset)


@given(places())
def test_legal_coordinates_survive_encoding_and_decoding(case: tuple[Topology, PhysAddr]) -> None:
    topology, place = case
    addresses = AddressMap(topology)
    address = encode(addresses, place)
    assert address < 1 << addresses.bits
    assert PhysAddr.decode(address, addresses) == place


@given(st.integers(-(1 << 20), 1 << WIDE_ADDRESS_BITS + 1), st.sampled_from(TOPOLOGIES))
def test_every_integer_is_decoded_or_refused(address: int, topology: Topology) -> None:
    addresses = AddressMap(topology)
    try:
        place = PhysAddr.decode(address, addresses)
    except PhysAddrError:
        return
    assert encode(addresses, place) == address


@given(st.integers(0, (1 << 37) - 1))
def test_the_window_address_of_hbm_is_the_address_of_a_slice(offset: int) -> None:
    topology = TOPOLOGIES[0]
    addresses = AddressMap(topology)
    if offset >= topology.pes_per_cube * topology.hbm_slice_bytes:
        with pytest.raises(PhysAddrError):
            addresses.hbm_addr(0, 0, offset)
        return
    pe, inside = divmod(offset, topology.hbm_slice_bytes)
    assert addresses.hbm_addr(0, 0, offset) == addresses.pe_hbm_addr(0, 0, pe, inside)


@pytest.mark.parametrize("resource", ["tcm", "ipcq", "scratchpad", "regfile", "sram", "mcpu"])
def test_every_range_begins_on_a_page(resource: str) -> None:
    topology = TOPOLOGIES[0]
    pe = NO_PE if resource in ("sram", "mcpu") else 1
    address = encode(AddressMap(topology), PhysAddr(0, 0, resource, pe, 0))  # type: ignore[arg-type]
    assert address % 4096 == 0
