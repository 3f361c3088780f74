"""Physical addresses: fields, windows, reserved gaps."""

import pytest

from runtime.core.errors import PhysAddrError
from runtime.core.trace import NO_PE
from runtime.model.addresses import AddressMap, PhysAddr
from tests.support.topologies import variant

ADDRESSES = AddressMap(variant(system__sips__count=40))
GIB = 1 << 30


def problem(address: int) -> str:
    with pytest.raises(PhysAddrError) as raised:
        PhysAddr.decode(address, ADDRESSES)
    return str(raised.value)


def test_the_fields_stand_at_their_bits() -> None:
    address = ADDRESSES.pe_hbm_addr(sip=0x25, cube=3, pe=1, offset=5)
    assert address == 2 << 47 | 5 << 43 | 3 << 38 | 1 << 37 | (6 * GIB + 5)
    assert ADDRESSES.pe_tcm_addr(0, 0, 2, 0x10) == 0x2000_0010
    assert ADDRESSES.cube_sram_addr(0, 1, 0) == 1 << 38 | 0x10_0000_0000


def test_an_address_names_its_rack_and_the_sip_in_it() -> None:
    decoded = PhysAddr.decode(ADDRESSES.pe_tcm_addr(37, 0, 0, 0), ADDRESSES)
    assert (decoded.sip, decoded.rack, decoded.sip_in_rack) == (37, 2, 5)


@pytest.mark.parametrize(("sips", "bits"), [(1, 51), (256, 51), (257, 53), (1024, 53)])
def test_more_than_16_racks_need_two_bits_more(sips: int, bits: int) -> None:
    addresses = AddressMap(variant(system__sips__count=sips))
    last = addresses.pe_tcm_addr(sips - 1, 0, 0, 0)
    assert (addresses.bits, last >> 43) == (bits, sips - 1)
    assert PhysAddr.decode(last, addresses).rack == (sips - 1) // 16
    with pytest.raises(PhysAddrError, match=f"not an address of {bits} bits"):
        PhysAddr.decode(1 << bits, addresses)


def test_what_the_pes_of_a_cube_share_has_no_pe() -> None:
    assert PhysAddr.decode(ADDRESSES.cube_sram_addr(1, 2, 3), ADDRESSES) == PhysAddr(
        1, 2, "sram", NO_PE, 3
    )
    assert PhysAddr.decode(ADDRESSES.cube_mcpu_addr(1, 2, 3), ADDRESSES) == PhysAddr(
        1, 2, "mcpu", NO_PE, 3
    )


def test_an_hbm_address_counts_through_the_slices() -> None:
    assert PhysAddr.decode(ADDRESSES.hbm_addr(0, 0, 13 * GIB), ADDRESSES) == PhysAddr(
        0, 0, "hbm", 2, 1 * GIB
    )


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (1 << 51, "0x8000000000000: not an address of 51 bits"),
        (-1, "-0x1: not an address of 51 bits"),
        (40 << 43, "sip: 0x28 is not in 0..0x27"),
        (16 << 38, "cube: 0x10 is not in 0..0xf"),
        (8 * 0x1000_0000, "pe: 0x8 is not in 0..0x7"),
        (1 << 37 | 48 * GIB, "reserved: HBM of cube 0 ends at 0xc00000000"),
        (0x0100_0000, "reserved: window offset 0x1000000 is in the gap after tcm"),
        (0x1810_0000, "reserved: window offset 0x18100000 is in the gap after ipcq"),
        (0x0A01_0000, "reserved: window offset 0xa010000 is in the gap after regfile"),
        (0x08_0000_0000, "reserved: window offset 0x800000000 is in the gap before sram"),
        (0x10_0200_0000, "reserved: window offset 0x1002000000 is in the gap after sram"),
        (0x18_0100_0000, "reserved: window offset 0x1801000000 is in the gap after mcpu"),
    ],
)
def test_an_address_that_names_nothing_is_refused_with_the_field_or_the_gap(
    address: int, message: str
) -> None:
    assert message in problem(address)


def test_a_field_out_of_range_is_refused_by_name() -> None:
    with pytest.raises(PhysAddrError, match=r"tcm: 0x1000000 is not in 0..0xffffff"):
        ADDRESSES.pe_tcm_addr(0, 0, 0, 16 << 20)
    with pytest.raises(PhysAddrError, match="pe: 0x8 is not in"):
        ADDRESSES.pe_ipcq_addr(0, 0, 8, 0)
    with pytest.raises(PhysAddrError, match="cube: 0x10 is not in"):
        ADDRESSES.cube_sram_addr(0, 16, 0)
    with pytest.raises(PhysAddrError, match="sip: -0x1 is not in"):
        ADDRESSES.pe_hbm_addr(-1, 0, 0, 0)
    with pytest.raises(PhysAddrError, match="hbm: 0x180000000 is not in"):
        ADDRESSES.pe_hbm_addr(0, 0, 0, 6 * GIB)
