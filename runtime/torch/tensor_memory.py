"""The simulated memory of the tensors of a rank: ranges of HBM slices, and virtual pages.

The addresses depend on the program alone, not on the moments at which Python deletes objects:

    dies by reference count    a point of the program: its memory is free at the next allocation
    in a reference cycle       never: its memory is never used again

A collection during a run deletes nothing (`runtime.core.garbage_collection`). For the text of an
`AllocationError` the tensors in cycles are finalised and counted; they keep their memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.core.errors import AllocationError
from runtime.core.garbage_collection import finalise_cycles, is_collecting, watch_collections
from runtime.model.addresses import AddressMap
from runtime.model.allocation import BufferKind, RangeAllocator, SipMemories, VirtualAllocator
from runtime.model.placement import ShardSpec
from runtime.model.topology import Topology


@dataclass(frozen=True)
class Shard:
    """A shard with its physical address."""

    spec: ShardSpec
    address: int


@dataclass(frozen=True)
class _AllocatedRange:
    """A range, with the address that its allocator returned."""

    allocator: RangeAllocator | VirtualAllocator
    address: int
    nbytes: int

    def free(self) -> None:
        self.allocator.free(self.address)


class Allocation:
    """The memory of one tensor, which is dropped when the last reference to this object dies.

    `address` is virtual.
    """

    def __init__(
        self,
        memory: "TensorMemory",
        ranges: tuple[_AllocatedRange, ...],
        address: int,
        shards: tuple[Shard, ...],
    ) -> None:
        self._memory, self._ranges = memory, ranges
        self.address, self.shards = address, shards

    def __del__(self) -> None:
        # May run in a collection, in the greenlet of another rank, or after the end of the run: so
        # it frees nothing itself.
        self._memory.drop(self._ranges)


class TensorMemory:
    """The memories of one SIP and the virtual addresses of its rank."""

    def __init__(self, topology: Topology, sip: int, addresses: AddressMap) -> None:
        self._addresses = addresses
        self._memories = SipMemories(topology, sip)
        self._virtual = VirtualAllocator(f"sip {sip}")
        # The ranges of each dead tensor: those to free, and those never to use again.
        self._dropped: list[tuple[_AllocatedRange, ...]] = []
        self._kept: list[tuple[_AllocatedRange, ...]] = []
        watch_collections()

    def allocate(self, specs: Sequence[ShardSpec], nbytes: int) -> Allocation:
        """Allocate a virtual range of `nbytes` and every shard; `AllocationError` if a memory is
        full.
        """
        self._free_dropped()
        ranges: list[_AllocatedRange] = []
        try:
            # Every rank allocates virtual addresses by itself: a pointer is valid on one SIP only.
            ranges.append(_allocated(self._virtual, nbytes))
            # Extended by a generator: if a shard does not fit, the list has those before it.
            ranges.extend(
                _allocated(self._memories.hbm(spec.cube, spec.pe), spec.nbytes) for spec in specs
            )
        except AllocationError as error:
            for each in ranges:
                each.free()
            raise self._explained(error) from None
        virtual, *physical = ranges
        shards = tuple(
            Shard(spec, self._addresses.pe_hbm_addr(*spec.coordinates, each.address))
            for spec, each in zip(specs, physical, strict=True)
        )
        return Allocation(self, tuple(ranges), virtual.address, shards)

    def reserve_rings(
        self, kind: BufferKind, cube: int, pe: int, nbytes: int, above_bytes: int
    ) -> None:
        """Reserve the receive rings of a queue table, as `SipMemories.reserve_rings` does."""
        self._free_dropped()
        try:
            self._memories.reserve_rings(kind, cube, pe, nbytes, above_bytes)
        except AllocationError as error:
            raise self._explained(error) from None

    def drop(self, ranges: tuple[_AllocatedRange, ...]) -> None:
        """Give up the memory of a tensor that has died; it is not free before the next
        allocation.
        """
        (self._kept if is_collecting() else self._dropped).append(ranges)

    def _free_dropped(self) -> None:
        # First fit depends on the set of free ranges, so the order in which they are freed has no
        # effect.
        while self._dropped:
            for each in self._dropped.pop():
                each.free()

    def _explained(self, error: AllocationError) -> AllocationError:
        """The error with the memory that tensors in reference cycles keep, if they do."""
        # Collections of the run delete nothing, so this one finds the tensors of all cycles.
        finalise_cycles()
        here = [
            sum(each.nbytes for each in ranges if each.allocator.memory == error.memory)
            for ranges in self._kept
        ]
        kept = [nbytes for nbytes in here if nbytes]
        if not kept:
            return error
        tensors = "1 tensor" if len(kept) == 1 else f"{len(kept)} tensors"
        return AllocationError(
            error.memory,
            error.nbytes,
            f"{error.problem}; {tensors} in reference cycles, which the program no longer uses, "
            f"took {sum(kept):,} bytes; this memory is not used again, since garbage collection "
            "must not change addresses; break the cycles before the tensors are dropped, for "
            "example with weakref.ref",
        )


def _allocated(allocator: RangeAllocator | VirtualAllocator, nbytes: int) -> _AllocatedRange:
    # An empty tensor reserves a byte, so that no two tensors share an address.
    size = max(nbytes, 1)
    return _AllocatedRange(allocator, allocator.alloc(size), size)
