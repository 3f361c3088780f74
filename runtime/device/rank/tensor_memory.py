"""The simulated memory of the tensors of a rank: ranges of HBM slices, and virtual pages.

The memory of a dead tensor is cached, as in PyTorch: the next tensor with equal shards takes it
over, with its virtual range, its name in the order of commands, and the PEs that have mapped it. So
a fresh tensor in a loop costs no new mapping, and its commands wait for those of its predecessor.
If a memory is full, the device is synchronised, and cached memory is freed: then no command uses
it.

The addresses depend on the program alone, not on the moments at which Python deletes objects:

    dies by reference count    a point of the program: its memory is cached at the next allocation
    in a reference cycle       never: its memory is never used again
    in another thread          at a moment of wall time: its memory is never used again

A collection during a run deletes nothing (`runtime.core.garbage_collection`). For the text of an
`AllocationError` the tensors in cycles are finalised and counted; they keep their memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from sys import is_finalizing
from threading import get_ident
from typing import TypeVar

from runtime.core.errors import AllocationError
from runtime.core.garbage_collection import finalise_cycles, is_collecting, watch_collections
from runtime.device.rank.shard_layout import ShardLayout
from runtime.model.addresses import PAGE_BYTES, AddressMap
from runtime.model.allocation import (
    ALIGN_BYTES,
    BufferKind,
    RangeAllocator,
    SipMemories,
    VirtualAllocator,
    virtual_bytes,
)
from runtime.model.placement import ShardSpec
from runtime.model.topology import Topology

_Reserved = TypeVar("_Reserved")


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


@dataclass(eq=False)
class MemoryBlock:
    """Memory that tensors with equal shards use one after the other.

    `address` is virtual. `is_new` is whether nothing has used the memory before. `name` is that of
    the first tensor, empty before it has one; `mapped` are the PEs, as (cube, pe), whose page
    tables have the virtual range.
    """

    ranges: tuple[_AllocatedRange, ...]
    address: int
    shards: tuple[Shard, ...]
    layout: ShardLayout
    is_new: bool
    name: str = ""
    mapped: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    @property
    def nbytes(self) -> int:
        """Bytes in all slices; every replica counts."""
        return self.layout.stored_bytes

    def free(self) -> None:
        """Free the ranges."""
        for each in self.ranges:
            each.free()


class Allocation:
    """The memory of one tensor, which is dropped when the last reference to this object dies."""

    def __init__(self, memory: "TensorMemory", block: MemoryBlock) -> None:
        self._memory, self.block = memory, block
        self.address, self.shards = block.address, block.shards

    def named(self, name: str, itemsize: int) -> None:
        """The tensor has a name, and elements of `itemsize` bytes."""
        if self._memory.made is not None:
            self._memory.made(name, self.block, itemsize)

    def is_zero(self) -> bool:
        """Whether nothing has used the memory since the run began, so that it is zero.

        The records have what depends on it, which is no undefined value.
        """
        if self.block.is_new and self._memory.zeros is not None:
            self._memory.zeros(self.block)
        return self.block.is_new

    def __del__(self, is_finalizing: Callable[[], bool] = is_finalizing) -> None:
        # May run in a collection, in the greenlet of another rank, or after the end of the run: so
        # it frees nothing itself. When Python exits, it empties the modules before the last
        # objects die: the function is a default, since the names of this module are gone.
        if not is_finalizing():
            self._memory.drop(self.block)


class TensorMemory:
    """The memories of one SIP and the virtual addresses of its rank.

    `synchronize` waits until the device uses no memory of a dead tensor. `allocated_bytes` are
    those of tensors, in cycles too, `peak_bytes` the most since the start or `reset_peak`, and
    `reserved_peak_bytes` the most of `reserved_bytes`.
    """

    def __init__(
        self,
        topology: Topology,
        sip: int,
        addresses: AddressMap,
        synchronize: Callable[[], None] = lambda: None,
    ) -> None:
        self._addresses = addresses
        self._thread = get_ident()
        self._memories = SipMemories(topology, sip)
        self._virtual = VirtualAllocator(f"sip {sip}", virtual_bytes(topology))
        self._synchronize = synchronize
        self.made: Callable[[str, MemoryBlock, int], None] | None = None
        """Is called with name, memory and bytes of an element of each new tensor, in a run with
        records.
        """
        self.zeros: Callable[[MemoryBlock], None] | None = None
        """Is called with the memory of a new tensor whose user relies on its zeros."""
        # The blocks of dead tensors: those to cache, those in the cache, and those never to use
        # again.
        self._dropped: list[MemoryBlock] = []
        self._cached: dict[ShardLayout, list[MemoryBlock]] = {}
        self._kept: list[MemoryBlock] = []
        self._layouts: dict[tuple[tuple[ShardSpec, ...], int, int], ShardLayout] = {}
        self._allocated = self.peak_bytes = 0
        self._reserved = self.reserved_peak_bytes = 0
        self._has_freed = False
        watch_collections()

    @property
    def allocated_bytes(self) -> int:
        """Bytes of the tensors that live."""
        self._cache_dropped()
        return self._allocated

    @property
    def reserved_bytes(self) -> int:
        """Bytes of the tensors that live, and of memory that is kept for later ones."""
        return self._reserved

    def reset_peak(self) -> None:
        """Count the peak from now on."""
        self.peak_bytes = self.allocated_bytes
        self.reserved_peak_bytes = self.reserved_bytes

    def layout(
        self, specs: Sequence[ShardSpec], nbytes: int, align: int = ALIGN_BYTES
    ) -> ShardLayout:
        """The layout of tensors with these shards and `nbytes` bytes."""
        key = (tuple(specs), nbytes, align)
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = ShardLayout(*key)
        return layout

    def allocate(self, specs: Sequence[ShardSpec], nbytes: int) -> Allocation:
        """Allocate a virtual range of `nbytes` and every shard, or take over cached memory;
        `AllocationError` if a memory is full.
        """
        return self.allocate_as(self.layout(specs, nbytes))

    def allocate_as(self, layout: ShardLayout) -> Allocation:
        """`allocate` with the shards and the bytes of a layout of this memory."""
        self._cache_dropped()
        cached = self._cached.get(layout)
        if cached:
            # The lowest one: then the order in which tensors have died has no effect.
            block = min(cached, key=lambda each: each.address)
            cached.remove(block)
            block.is_new = False
        else:
            block = self._retried(lambda: self._new(layout))
            self._reserved += block.nbytes
            self.reserved_peak_bytes = max(self.reserved_peak_bytes, self._reserved)
        self._allocated += block.nbytes
        self.peak_bytes = max(self.peak_bytes, self._allocated)
        return Allocation(self, block)

    def reserve_rings(
        self, kind: BufferKind, cube: int, pe: int, nbytes: int, above_bytes: int
    ) -> None:
        """Reserve the receive rings of a queue table, as `SipMemories.reserve_rings` does."""
        self._cache_dropped()
        self._retried(lambda: self._memories.reserve_rings(kind, cube, pe, nbytes, above_bytes))

    def empty_cache(self) -> None:
        """Free the memory of dead tensors, after a synchronisation if there is any."""
        self._cache_dropped()
        blocks = [block for cached in self._cached.values() for block in cached]
        self._cached.clear()
        if not blocks:
            return
        # A command may still use the memory, in a stream that later tensors do not wait for.
        self._synchronize()
        self._has_freed = True
        for block in blocks:
            block.free()
            self._reserved -= block.nbytes

    def drop(self, block: MemoryBlock) -> None:
        """Give up the memory of a tensor that has died; it is not cached before the next
        allocation.
        """
        is_of_the_program = get_ident() == self._thread and not is_collecting()
        (self._dropped if is_of_the_program else self._kept).append(block)

    def _new(self, layout: ShardLayout) -> MemoryBlock:
        specs = layout.specs
        ranges: list[_AllocatedRange] = []
        try:
            # Every rank allocates virtual addresses by itself: a pointer is valid on one SIP only.
            ranges.append(_allocated(self._virtual, layout.nbytes, PAGE_BYTES))
            # Extended by a generator: if a shard does not fit, the list has those before it.
            ranges.extend(
                _allocated(self._memories.hbm(spec.cube, spec.pe), spec.nbytes, layout.align)
                for spec in specs
            )
        except AllocationError:
            for each in ranges:
                each.free()
            raise
        virtual, *physical = ranges
        shards = tuple(
            Shard(spec, self._addresses.pe_hbm_addr(*spec.coordinates, each.address))
            for spec, each in zip(specs, physical, strict=True)
        )
        is_new = not self._has_freed
        return MemoryBlock(tuple(ranges), virtual.address, shards, layout, is_new)

    def _retried(self, reserve: Callable[[], _Reserved]) -> _Reserved:
        """Reserve memory; if there is none, again without cached memory."""
        try:
            return reserve()
        except AllocationError:
            self.empty_cache()
        try:
            return reserve()
        except AllocationError as error:
            raise self._explained(error) from None

    def _cache_dropped(self) -> None:
        while self._dropped:
            block = self._dropped.pop()
            self._allocated -= block.nbytes
            self._cached.setdefault(block.layout, []).append(block)

    def _explained(self, error: AllocationError) -> AllocationError:
        """The error with the memory that tensors in reference cycles keep, if they do."""
        # Collections of the run delete nothing, so this one finds the tensors of all cycles.
        finalise_cycles()
        here = [
            sum(each.nbytes for each in block.ranges if each.allocator.memory == error.memory)
            for block in self._kept
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


def _allocated(
    allocator: RangeAllocator | VirtualAllocator, nbytes: int, align: int
) -> _AllocatedRange:
    # An empty tensor reserves a byte, so that no two tensors share an address.
    size = max(nbytes, 1)
    return _AllocatedRange(allocator, allocator.alloc(size, align), size)
