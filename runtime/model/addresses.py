"""Encodes and decodes physical addresses of 51 bits: rack, SIP, cube, window and offset.

    bits       field           holds
    [50:47]    rack            0..15; in a machine of more than 256 SIPs [52:47], 0..63
    [46:43]    sip in rack     0..15; the SIP number is rack * 16 + sip in rack
    [42:38]    segment         cube, 0..31
    [37]       window          1: HBM, 0: PE resources
    [36:0]     window offset

Each cube has two windows of 128 GiB, selected by bit 37.

HBM window: the slices of the cube's PEs in order, PE = window offset // slice size.

PE-resource window: fixed ranges, 4 KiB aligned; everything between and after them is reserved.

    offset in the window         range        reserved for it   in use
    pe * 0x1000_0000             tcm          128 MiB           pe.tcm_mb
    pe * 0x1000_0000 + 0x800_0000  ipcq       1 MiB             1 MiB
    pe * 0x1000_0000 + 0x900_0000  scratchpad 1 MiB             1 MiB
    pe * 0x1000_0000 + 0xA00_0000  regfile    64 KiB            64 KiB
    pe * 0x1000_0000 + 0xC00_0000  vectors    64 MiB            64 MiB
    0x10_0000_0000               sram         16 GiB            cube.sram_mb
    0x18_0000_0000               mcpu         16 MiB            16 MiB

64 PEs of 256 MiB end at 0x4_0000_0000.

The rack is the highest field, so a larger machine has wider addresses, and each SIP the same ones.
"""

from dataclasses import dataclass
from typing import Literal

from runtime.core.errors import PhysAddrError
from runtime.core.trace import NO_PE
from runtime.model.schema.topology_schema import GIB, MIB, Topology

Resource = Literal["hbm", "tcm", "ipcq", "scratchpad", "regfile", "vectors", "sram", "mcpu"]

ADDRESS_BITS = 51
"""Width of an address in a machine of up to 256 SIPs, which are 16 racks."""
WIDE_ADDRESS_BITS = 53
"""Width in a larger machine, of up to 64 racks. A float of 64 bits still has every address."""
MAX_SIPS = 1024
MAX_CUBES = 32
MAX_PES_PER_CUBE = 64
HBM_WINDOW_BYTES = 128 * GIB
MAX_TCM_BYTES = 128 * MIB
MAX_SRAM_BYTES = 16 * GIB
REGFILE_BYTES = 64 << 10
VECTOR_BYTES = 64 * MIB
"""Addresses for the results of a chain of the vector engine; few of them are in registers at once,
the others pass the engine vector by vector.
"""
PAGE_BYTES = 4096

# Rack and SIP in the rack are adjacent fields, so one shift gives the number of the SIP.
_SIP_SHIFT, _CUBE_SHIFT = 43, 38
# A window has 2^37 bytes, 128 GiB: the bit above its offset selects it.
_HBM_WINDOW = 1 << 37
# Strides and bases are those of the largest machine, so that a resource has the same offset in
# every machine.
_PE_STRIDE = 256 * MIB
_CUBE_RANGES = 64 * GIB


@dataclass(frozen=True, slots=True)
class PhysAddr:
    """A decoded address: `offset` bytes into a resource; `pe` is `NO_PE` for one of the cube."""

    sip: int
    cube: int
    resource: Resource
    pe: int
    offset: int

    @classmethod
    def decode(cls, address: int, addresses: "AddressMap") -> "PhysAddr":
        """Decode `address`; `PhysAddrError` names the field that is out of range, or the gap."""
        if not 0 <= address < 1 << addresses.bits:
            raise PhysAddrError(f"{address:#x}", f"not an address of {addresses.bits} bits")
        sip, cube = address >> _SIP_SHIFT, address >> _CUBE_SHIFT & (MAX_CUBES - 1)
        offset = address & (_HBM_WINDOW - 1)
        addresses.check("sip", sip, address)
        addresses.check("cube", cube, address)
        # The windows are distinguished by one bit, as hardware does.
        if address & _HBM_WINDOW:
            if offset >= addresses.hbm_bytes:
                raise PhysAddrError(
                    f"{address:#x}",
                    f"reserved: HBM of cube {cube} ends at {addresses.hbm_bytes:#x}",
                )
            # The slices follow each other without gaps, so the PE is a quotient and not a bit
            # field.
            return cls(sip, cube, "hbm", *divmod(offset, addresses.slice_bytes))
        # Above the ranges of 64 PEs lie the resources of the cube.
        if offset >= MAX_PES_PER_CUBE * _PE_STRIDE:
            return cls(sip, cube, *_in_range(address, offset, NO_PE, addresses.cube_ranges))
        pe, local = divmod(offset, _PE_STRIDE)
        addresses.check("pe", pe, address)
        return cls(sip, cube, *_in_range(address, local, pe, addresses.pe_ranges))

    @property
    def rack(self) -> int:
        """The rack of the SIP."""
        return self.sip // 16

    @property
    def sip_in_rack(self) -> int:
        """The number of the SIP in its rack."""
        return self.sip % 16


@dataclass(frozen=True, slots=True)
class Range:
    """The bytes of a resource in the PE-resource window.

    `base` counts from the first byte of the PE's part, for a resource of the cube from that of the
    window.
    """

    resource: Resource
    base: int
    nbytes: int


class AddressMap:
    """Encodes the addresses of one machine, and refuses those that its topology does not have.

    `PhysAddr.decode` is the inverse. An address has `bits`. `cube_ranges` and `pe_ranges` are in
    ascending order.
    """

    def __init__(self, topology: Topology) -> None:
        # The limits of this machine, not of the address format: an address beyond them names
        # nothing.
        self._limits = {"sip": topology.sips, "cube": topology.cubes, "pe": topology.pes_per_cube}
        self.bits = ADDRESS_BITS if topology.sips <= 256 else WIDE_ADDRESS_BITS
        self.slice_bytes = topology.hbm_slice_bytes
        self.tcm_bytes, self.sram_bytes = topology.tcm_bytes, topology.sram_bytes
        self.hbm_bytes = topology.pes_per_cube * self.slice_bytes
        # A range has the size that this machine has of the resource: the rest of what is reserved
        # for it is a gap, and an access there is an error.
        self.pe_ranges = (
            Range("tcm", 0, self.tcm_bytes),
            Range("ipcq", 0x800_0000, MIB),
            Range("scratchpad", 0x900_0000, MIB),
            Range("regfile", 0xA00_0000, REGFILE_BYTES),
            Range("vectors", 0xC00_0000, VECTOR_BYTES),
        )
        self.cube_ranges = (
            Range("sram", _CUBE_RANGES, self.sram_bytes),
            Range("mcpu", _CUBE_RANGES + 32 * GIB, 16 * MIB),
        )

    def hbm_addr(self, sip: int, cube: int, offset: int) -> int:
        """The address of a byte of a cube's HBM, counted through all slices."""
        _check("hbm", offset, self.hbm_bytes)
        return self._segment(sip, cube) | _HBM_WINDOW | offset

    def pe_hbm_addr(self, sip: int, cube: int, pe: int, offset: int) -> int:
        """The address of a byte of the HBM slice of a PE."""
        self.check("pe", pe)
        _check("hbm", offset, self.slice_bytes)
        return self._segment(sip, cube) | _HBM_WINDOW | (pe * self.slice_bytes + offset)

    def pe_tcm_addr(self, sip: int, cube: int, pe: int, offset: int) -> int:
        """The address of a byte of a PE's tightly coupled memory."""
        return self._pe_addr(self.pe_ranges[0], sip, cube, pe, offset)

    def pe_ipcq_addr(self, sip: int, cube: int, pe: int, offset: int) -> int:
        """The address of a byte of a PE's queue registers."""
        return self._pe_addr(self.pe_ranges[1], sip, cube, pe, offset)

    def pe_scratchpad_addr(self, sip: int, cube: int, pe: int, offset: int) -> int:
        """The address of a byte of a PE's scratchpad."""
        return self._pe_addr(self.pe_ranges[2], sip, cube, pe, offset)

    def pe_regfile_addr(self, sip: int, cube: int, pe: int, offset: int) -> int:
        """The address of a byte of a PE's register file."""
        return self._pe_addr(self.pe_ranges[3], sip, cube, pe, offset)

    def pe_vectors_addr(self, sip: int, cube: int, pe: int, offset: int) -> int:
        """The address of a byte of the results of a chain on a PE."""
        return self._pe_addr(self.pe_ranges[4], sip, cube, pe, offset)

    def cube_sram_addr(self, sip: int, cube: int, offset: int) -> int:
        """The address of a byte of a cube's SRAM."""
        return self._cube_addr(self.cube_ranges[0], sip, cube, offset)

    def cube_mcpu_addr(self, sip: int, cube: int, offset: int) -> int:
        """The address of a byte of the memory of a cube's management CPU."""
        return self._cube_addr(self.cube_ranges[1], sip, cube, offset)

    def check(self, field: str, value: int, address: int | None = None) -> None:
        """Refuse a `sip`, `cube` or `pe` that the machine lacks; it may come from `address`."""
        _check(field, value, self._limits[field], address)

    def _pe_addr(self, within: Range, sip: int, cube: int, pe: int, offset: int) -> int:
        self.check("pe", pe)
        _check(within.resource, offset, within.nbytes)
        return self._segment(sip, cube) | (pe * _PE_STRIDE + within.base + offset)

    def _cube_addr(self, within: Range, sip: int, cube: int, offset: int) -> int:
        _check(within.resource, offset, within.nbytes)
        return self._segment(sip, cube) | (within.base + offset)

    def _segment(self, sip: int, cube: int) -> int:
        self.check("sip", sip)
        self.check("cube", cube)
        return sip << _SIP_SHIFT | cube << _CUBE_SHIFT


def _in_range(
    address: int, local: int, pe: int, ranges: tuple[Range, ...]
) -> tuple[Resource, int, int]:
    """(resource, PE, offset in it) of byte `local`; `PhysAddrError` if it lies in no range."""
    for candidate in ranges:
        if candidate.base <= local < candidate.base + candidate.nbytes:
            return candidate.resource, pe, local - candidate.base
    # The ranges ascend, so the last one that begins below the address is its predecessor.
    below = [candidate.resource for candidate in ranges if candidate.base <= local]
    gap = f"the gap after {below[-1]}" if below else f"the gap before {ranges[0].resource}"
    offset = address & (_HBM_WINDOW - 1)
    raise PhysAddrError(f"{address:#x}", f"reserved: window offset {offset:#x} is in {gap}")


def _check(field: str, value: int, limit: int, address: int | None = None) -> None:
    """Refuse a field that is out of range; it may come from `address`."""
    if not 0 <= value < limit:
        what = field if address is None else f"{address:#x}: {field}"
        raise PhysAddrError(what, f"{value:#x} is not in 0..{limit - 1:#x}")
