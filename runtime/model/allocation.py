"""Who owns which bytes of which memory: a first-fit allocator, the memories of a SIP, and virtual addresses."""

from bisect import bisect_left, insort
from typing import Literal

from runtime.core.errors import AllocationError
from runtime.model.addresses import PAGE_BYTES
from runtime.model.schema import GIB, Topology

BufferKind = Literal["tcm", "hbm", "sram"]

ALIGN_BYTES = 64
VIRTUAL_BASE = 0x1_0000_0000
VIRTUAL_BYTES = 64 * GIB


class RangeAllocator:
    """First fit over the offsets `0..nbytes-1` of one memory; free neighbours are one range.

    Raises `AllocationError`, which calls the memory `memory`.
    """

    def __init__(self, memory: str, nbytes: int) -> None:
        self.memory, self.nbytes = memory, nbytes
        self._free = [(0, nbytes)] if nbytes else []
        self._taken: dict[int, int] = {}

    @property
    def free_ranges(self) -> tuple[tuple[int, int], ...]:
        """`(offset, bytes)` of every free range, ascending; no two touch."""
        return tuple(self._free)

    @property
    def free_bytes(self) -> int:
        """Bytes that nobody owns."""
        return sum(nbytes for _, nbytes in self._free)

    def alloc(self, nbytes: int, align: int = ALIGN_BYTES) -> int:
        """The lowest free offset, a multiple of `align`, with `nbytes` behind it."""
        self._check_size(nbytes)
        for start, size in self._free:
            offset = -(-start // align) * align
            if offset + nbytes <= start + size:
                self._take(offset, nbytes)
                return offset
        largest = max((size for _, size in self._free), default=0)
        free = f"{self.free_bytes:,} of {self.nbytes:,} bytes are free, the largest range has {largest:,}"
        raise AllocationError(self.memory, nbytes, f"{free} (alignment {align})")

    def reserve(self, offset: int, nbytes: int) -> None:
        """Take the range at a given offset; somebody else's byte in it is an error."""
        self._check_size(nbytes)
        if not 0 <= offset <= self.nbytes - nbytes:
            raise AllocationError(
                self.memory,
                nbytes,
                f"offset {offset:#x} leaves the memory of {self.nbytes:,} bytes",
            )
        if not any(
            start <= offset and offset + nbytes <= start + size for start, size in self._free
        ):
            raise AllocationError(
                self.memory, nbytes, f"the range at offset {offset:#x} overlaps one that is taken"
            )
        self._take(offset, nbytes)

    def free(self, offset: int) -> None:
        """Give back what `alloc` returned or `reserve` took."""
        nbytes = self._taken.pop(offset, None)
        if nbytes is None:
            raise AllocationError(
                self.memory, 0, f"cannot free offset {offset:#x}: nothing was allocated there"
            )
        place = bisect_left(self._free, (offset, 0))
        end = offset + nbytes
        if place < len(self._free) and self._free[place][0] == end:
            end += self._free.pop(place)[1]
        if place and sum(self._free[place - 1]) == offset:
            offset = self._free.pop(place - 1)[0]
        insort(self._free, (offset, end - offset))

    def _check_size(self, nbytes: int) -> None:
        if nbytes < 1:
            raise AllocationError(self.memory, nbytes, "a range has at least one byte")

    def _take(self, offset: int, nbytes: int) -> None:
        place = bisect_left(self._free, (offset + 1, 0)) - 1
        start, size = self._free.pop(place)
        behind = start + size - (offset + nbytes)
        rest = ((start, offset - start), (offset + nbytes, behind))
        self._free[place:place] = [free for free in rest if free[1]]
        self._taken[offset] = nbytes


class SipMemories:
    """The memories of one SIP. Offsets are those of `AddressMap`.

    A PE's TCM holds, from the bottom: tensors and queues, the scratch of collectives, that of other kernels, the scheduler's
    part; only the first is allocated here. Receive rings lie at the top of their memory, where `ring_offset` says without
    asking anyone: a peer computes the address of a ring it sends to.
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
        """Take the `nbytes` of the receive rings of one queue table of a PE, below those of others, and return their offset.

        Raises `AllocationError` when a tensor lies there or the memory is too small.
        """
        memory = self._memory(kind, cube, 0 if kind == "sram" else pe)
        offset = ring_offset(self._topology, kind, pe, nbytes, above_bytes)
        memory.reserve(offset, nbytes)
        return offset

    def _memory(self, kind: BufferKind, cube: int, pe: int) -> RangeAllocator:
        memory = self._memories.get((kind, cube, pe))
        if memory is None:
            place = f"sip {self._sip} cube {cube}" + ("" if kind == "sram" else f" pe {pe}")
            memory = RangeAllocator(f"{kind} of {place}", allocatable_bytes(self._topology, kind))
            self._memories[kind, cube, pe] = memory
        return memory


def allocatable_bytes(topology: Topology, kind: BufferKind) -> int:
    """Bytes of a memory that tensors and rings share."""
    match kind:
        case "hbm":
            return topology.hbm_slice_bytes
        case "sram":
            return topology.sram_bytes
        case "tcm":
            return collective_scratch_offset(topology)


def kernel_scratch_offset(topology: Topology) -> int:
    """Where the scratch of a kernel begins in the TCM of its PE."""
    return topology.tcm_bytes - topology.scheduler_reserved_bytes - topology.kernel_scratch_bytes


def collective_scratch_offset(topology: Topology) -> int:
    """The same for the kernel of a collective, which may run beside another one."""
    return kernel_scratch_offset(topology) - topology.collective_scratch_bytes


def tile_buffer_offset(topology: Topology) -> int:
    """Where the scheduler's part of the TCM of a PE begins."""
    return topology.tcm_bytes - topology.scheduler_reserved_bytes


def ring_offset(
    topology: Topology, kind: BufferKind, pe: int, nbytes: int, above_bytes: int = 0
) -> int:
    """Where the receive rings of a queue table of a PE lie in the memory `kind`: `nbytes` below the `above_bytes` of others.

    Both are the same for all PEs of a cube. These share its SRAM and have their rings one below the other. The offset is
    negative, and reserving it fails, where the memory is too small.
    """
    share, place = (topology.pes_per_cube, pe + 1) if kind == "sram" else (1, 1)
    return allocatable_bytes(topology, kind) - share * above_bytes - place * nbytes


class VirtualAllocator:
    """Virtual addresses of a process: 64 GiB in pages of 4 KiB from `VIRTUAL_BASE`."""

    def __init__(self, name: str) -> None:
        self._pages = RangeAllocator(f"virtual memory of {name}", VIRTUAL_BYTES)

    def alloc(self, nbytes: int) -> int:
        """The virtual address of whole pages that hold `nbytes`."""
        return VIRTUAL_BASE + self._pages.alloc(-(-nbytes // PAGE_BYTES) * PAGE_BYTES, PAGE_BYTES)

    def free(self, address: int) -> None:
        """Give back what `alloc` returned."""
        self._pages.free(address - VIRTUAL_BASE)
