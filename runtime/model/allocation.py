"""Allocates memory: a first-fit allocator, the memories of a SIP, and virtual addresses."""

from bisect import bisect_left, insort
from typing import Literal

from runtime.core.errors import AllocationError
from runtime.model.addresses import PAGE_BYTES
from runtime.model.schema.topology_schema import GIB, Topology

BufferKind = Literal["tcm", "hbm", "sram"]

ALIGN_BYTES = 64
VIRTUAL_BASE = 0x1_0000_0000
_SMALL_TENSORS_BYTES = 64 * GIB


class RangeAllocator:
    """First fit over the offsets `0..nbytes-1` of one memory.

    The free list is sorted and adjacent free ranges are merged. `AllocationError` names the memory
    `memory`.
    """

    def __init__(self, memory: str, nbytes: int) -> None:
        self.memory, self.nbytes = memory, nbytes
        self._free = [(0, nbytes)] if nbytes else []
        self._allocated: dict[int, int] = {}

    @property
    def free_ranges(self) -> tuple[tuple[int, int], ...]:
        """`(offset, bytes)` of every free range, ascending; no two are adjacent."""
        return tuple(self._free)

    @property
    def free_bytes(self) -> int:
        """The sum of all free ranges."""
        return sum(nbytes for _, nbytes in self._free)

    def alloc(self, nbytes: int, align: int = ALIGN_BYTES) -> int:
        """Allocate `nbytes` at the lowest free offset that is a multiple of `align`."""
        self._check_size(nbytes)
        # First fit in ascending order: equal allocations get equal addresses in every run, and the
        # digest of the op log covers the addresses.
        for start, size in self._free:
            # Rounded up to a multiple of the alignment.
            offset = -(-start // align) * align
            if offset + nbytes <= start + size:
                self._take(offset, nbytes)
                return offset
        largest = max((size for _, size in self._free), default=0)
        free = f"{self.free_bytes:,} of {self.nbytes:,} bytes are free"
        problem = f"{free}, the largest range has {largest:,} (alignment {align})"
        raise AllocationError(self.memory, nbytes, problem)

    def reserve(self, offset: int, nbytes: int) -> None:
        """Allocate the range at a given offset; it is an error if a byte of it is not free."""
        self._check_size(nbytes)
        if not 0 <= offset <= self.nbytes - nbytes:
            raise AllocationError(
                self.memory,
                nbytes,
                f"offset {offset:#x} exceeds the memory of {self.nbytes:,} bytes",
            )
        # The range must lie in one free range, since adjacent free ranges are merged.
        if not any(
            start <= offset and offset + nbytes <= start + size for start, size in self._free
        ):
            raise AllocationError(
                self.memory, nbytes, f"the range at offset {offset:#x} overlaps an allocated one"
            )
        self._take(offset, nbytes)

    def free(self, offset: int) -> None:
        """Free a range that `alloc` or `reserve` allocated at `offset`."""
        nbytes = self._allocated.pop(offset, None)
        if nbytes is None:
            raise AllocationError(
                self.memory, 0, f"cannot free offset {offset:#x}: nothing was allocated there"
            )
        after = bisect_left(self._free, (offset, 0))
        end = offset + nbytes
        # Merge with the free range after it, then with the free range before it.
        if after < len(self._free) and self._free[after][0] == end:
            end += self._free.pop(after)[1]
        if after and sum(self._free[after - 1]) == offset:
            offset = self._free.pop(after - 1)[0]
        insort(self._free, (offset, end - offset))

    def _check_size(self, nbytes: int) -> None:
        # An empty range would have no byte to identify it by when it is freed.
        if nbytes < 1:
            raise AllocationError(self.memory, nbytes, "a range has at least one byte")

    def _take(self, offset: int, nbytes: int) -> None:
        index = bisect_left(self._free, (offset + 1, 0)) - 1
        start, size = self._free.pop(index)
        remaining = start + size - (offset + nbytes)
        parts = ((start, offset - start), (offset + nbytes, remaining))
        # What remains on both sides of the range stays free, unless it is empty.
        self._free[index:index] = [part for part in parts if part[1]]
        self._allocated[offset] = nbytes


class SipMemories:
    """The memories of one SIP. Offsets are those of `AddressMap`.

    From the bottom, the TCM of a PE holds tensors and receive rings, the scratch of sends, that of
    collectives, that of other kernels, and the part of the scheduler; only the first part is
    allocated here. Receive rings lie at the top of their memory, at an offset that depends on the
    topology and sizes alone (`ring_offset`): so a sender computes the address of its peer's ring
    itself.
    """

    def __init__(self, topology: Topology, sip: int) -> None:
        self._topology = topology
        self._sip = sip
        self._memories: dict[tuple[BufferKind, int, int], RangeAllocator] = {}

    def hbm(self, cube: int, pe: int) -> RangeAllocator:
        """The HBM slice of a PE."""
        return self._memory("hbm", cube, pe)

    def tcm(self, cube: int, pe: int) -> RangeAllocator:
        """The TCM of a PE below its scratch."""
        return self._memory("tcm", cube, pe)

    def sram(self, cube: int) -> RangeAllocator:
        """The SRAM of a cube."""
        return self._memory("sram", cube, 0)

    def reserve_rings(
        self, kind: BufferKind, cube: int, pe: int, nbytes: int, above_bytes: int = 0
    ) -> int:
        """Reserve `nbytes` for the receive rings of one queue table of a PE; returns their offset.

        They lie below the `above_bytes` of other tables. `AllocationError` if a tensor occupies the
        range or the memory is too small.
        """
        memory = self._memory(kind, cube, 0 if kind == "sram" else pe)
        offset = ring_offset(self._topology, kind, pe, nbytes, above_bytes)
        memory.reserve(offset, nbytes)
        return offset

    def _memory(self, kind: BufferKind, cube: int, pe: int) -> RangeAllocator:
        # Created on first use: a large machine has thousands of memories, and most runs use a few.
        memory = self._memories.get((kind, cube, pe))
        if memory is None:
            owner = f"sip {self._sip} cube {cube}" + ("" if kind == "sram" else f" pe {pe}")
            memory = RangeAllocator(f"{kind} of {owner}", allocatable_bytes(self._topology, kind))
            self._memories[kind, cube, pe] = memory
        return memory


def allocatable_bytes(topology: Topology, kind: BufferKind) -> int:
    """Bytes of a memory that are available to tensors and rings."""
    match kind:
        case "hbm":
            return topology.hbm_slice_bytes
        case "sram":
            return topology.sram_bytes
        case "tcm":
            return transfer_scratch_offset(topology)


def kernel_scratch_offset(topology: Topology) -> int:
    """The offset of the kernel scratch in the TCM of a PE."""
    # The parts of the TCM are counted from its top, the scheduler's part first: what is left below
    # them belongs to tensors and receive rings.
    return topology.tcm_bytes - topology.scheduler_reserved_bytes - topology.kernel_scratch_bytes


def collective_scratch_offset(topology: Topology) -> int:
    """The offset of the scratch of collectives, which may run beside another kernel."""
    return kernel_scratch_offset(topology) - topology.collective_scratch_bytes


def transfer_scratch_offset(topology: Topology) -> int:
    """The offset of the scratch of sends, which may run beside a collective and another kernel."""
    return collective_scratch_offset(topology) - topology.transfer_scratch_bytes


def tile_buffer_offset(topology: Topology) -> int:
    """The offset of the scheduler's part in the TCM of a PE."""
    return topology.tcm_bytes - topology.scheduler_reserved_bytes


def ring_offset(
    topology: Topology, kind: BufferKind, pe: int, nbytes: int, above_bytes: int = 0
) -> int:
    """The offset of the receive rings of a queue table of a PE in the memory `kind`.

    The rings take `nbytes` below the `above_bytes` of other tables; both numbers are equal for all
    PEs of a cube. In SRAM, which the PEs of a cube share, each table has the rings of PE 0, below
    them those of PE 1, and so on. The offset is negative if the memory is too small; reserving it
    then fails.
    """
    sharers, position = (topology.pes_per_cube, pe + 1) if kind == "sram" else (1, 1)
    return allocatable_bytes(topology, kind) - sharers * above_bytes - position * nbytes


def virtual_bytes(topology: Topology) -> int:
    """Bytes of the virtual address space of a process: more than its SIP has memory for.

    Twice the HBM, because free ranges of virtual addresses may lie between tensors where the slices
    have none; and 64 GiB, because a tensor smaller than a page takes a page here: 16 million.
    """
    slices = topology.cubes * topology.pes_per_cube
    return 2 * slices * topology.hbm_slice_bytes + _SMALL_TENSORS_BYTES


class VirtualAllocator:
    """Virtual addresses of a process: `nbytes` in pages of 4 KiB from `VIRTUAL_BASE`."""

    def __init__(self, name: str, nbytes: int) -> None:
        # Address 0 and the first 4 GiB stay unmapped, so that a null or truncated pointer is a page
        # fault.
        self._pages = RangeAllocator(f"virtual memory of {name}", nbytes)
        self.memory = self._pages.memory

    def alloc(self, nbytes: int, align: int = PAGE_BYTES) -> int:
        """Allocate whole pages for `nbytes`, from a multiple of `align` on; returns their virtual
        address.
        """
        return VIRTUAL_BASE + self._pages.alloc(-(-nbytes // PAGE_BYTES) * PAGE_BYTES, align)

    def free(self, address: int) -> None:
        """Free the pages at an address that `alloc` returned."""
        self._pages.free(address - VIRTUAL_BASE)
