"""Finds the memory on the fabric that holds a physical address."""

from typing import NamedTuple

from runtime.core.errors import PhysAddrError
from runtime.model.addresses import AddressMap, PhysAddr
from runtime.model.graph import ChipGraph

_REGION_BITS = 28
"""The bits of an address inside the part of a window that one PE has: 256 MiB."""


class _MemoryRange(NamedTuple):
    """The memory at (sip, node), from address `begin` to `end`."""

    begin: int
    end: int
    memory: tuple[int, int]


class MemoryMap:
    """The memories of all SIPs, which have the same nodes.

    The map keeps the last memory found in each region of 256 MiB: an address is decoded once for
    the memory that it is in, where to decode it takes longer than all else of a packet's header.
    """

    def __init__(self, addresses: AddressMap, graph: ChipGraph) -> None:
        self._addresses, self._graph = addresses, graph
        self._regions: dict[int, _MemoryRange] = {}

    def locate(self, address: int) -> tuple[int, int]:
        """(sip, node) of the memory that holds a physical address.

        Raises `PhysAddrError` for what is no memory on the fabric: the registers of a PE and of an
        M_CPU.
        """
        region = self._regions.get(address >> _REGION_BITS)
        if region is None or not region.begin <= address < region.end:
            region = self._regions[address >> _REGION_BITS] = self._decoded(address)
        return region.memory

    def _decoded(self, address: int) -> _MemoryRange:
        addresses, graph = self._addresses, self._graph
        decoded = PhysAddr.decode(address, addresses)
        match decoded.resource:
            # The PE of an HBM address is the owner of the slice; its node is the controller.
            case "hbm":
                node, nbytes = graph.hbm(decoded.cube, decoded.pe), addresses.slice_bytes
            case "sram":
                node, nbytes = graph.sram(decoded.cube), addresses.sram_bytes
            case "tcm":
                node, nbytes = graph.pe(decoded.cube, decoded.pe), addresses.tcm_bytes
            case _:
                raise PhysAddrError(
                    f"{address:#x}",
                    f"{decoded.resource} is not a memory that packets reach; hbm, tcm and sram are",
                )
        begin = address - decoded.offset
        return _MemoryRange(begin, begin + nbytes, (decoded.sip, node))
