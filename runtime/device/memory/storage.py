"""The memory behind a tensor and its windows: one virtual range, its shards, and the PEs on which
it is mapped.

A tensor is a window of a storage: an element type, a byte offset and a shape. All windows of a
storage share its memory and its name, by which commands are ordered, and keep it alive.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

from runtime.core.requests import Extent, MmuMapMsg
from runtime.device.rank.tensor_memory import Allocation, Shard
from runtime.model.placement import ShardSpec, Span

_Holder = tuple[int | None, int | None]
"""The cube and the PE that hold a shard; None stands for any."""


class Storage:
    """The memory of one allocation. `name` stands in error messages and in the order of commands:
    that of the first tensor in this memory. `address` is virtual, the shards are in (cube, pe)
    order; `layout` has them without addresses. `itemsize` is that of the elements, if they have one
    type.
    """

    def __init__(self, name: str, allocation: Allocation, itemsize: int = 1) -> None:
        # Dropped after the last window has died, and so after its requests were submitted.
        self._allocation = allocation
        # Memory of a dead tensor keeps its name, in whose order its last commands are.
        block = allocation.block
        block.name = block.name or name
        self.name, self.address, self.shards = block.name, block.address, block.shards
        self._mapped, self.layout = block.mapped, block.layout
        self._mappings: _Mappings | None = None
        allocation.named(name, itemsize)

    def is_zero(self) -> bool:
        """Whether nothing has used the memory since the run began, so that it is zero."""
        return self._allocation.is_zero()

    def window_shards(
        self, offset_bytes: int, shape: tuple[int, ...], itemsize: int
    ) -> tuple[Shard, ...]:
        """The parts of the shards that a window overlaps, of a storage whose tensor is flat: of
        unequal sizes, and none where it overlaps nothing.

        Offsets count from the start of the window. `spans` are those of the window's shape if the
        part is a rectangular block of it, else the one span of the flattened window. An empty
        window has one empty shard. `RuntimeError` if the end of a shard is inside an element.
        """
        key = "window", offset_bytes, shape, itemsize
        specs = self.layout.specs
        parts = self.layout.derived(
            key, lambda: _parts_of_window(specs, offset_bytes, shape, itemsize)
        )
        own = self.shards
        shards = [Shard(spec, own[number].address + skipped) for number, skipped, spec in parts]
        return tuple(shards) or empty_shards(own, shape)

    def map_requests(self, pes: Iterable[tuple[int, int]]) -> list[MmuMapMsg]:
        """The requests that map the whole storage on PEs given as (cube, pe), without those on
        which it is mapped already.

        Of replicas, a PE maps its own, else the first one of its cube, else the first one of the
        SIP.
        """
        entries: dict[int, list[tuple[int, tuple[Extent, ...]]]] = {}
        for cube, pe in sorted(set(pes) - self._mapped):
            if self._mappings is None:
                self._mappings = _Mappings(self)
            entries.setdefault(cube, []).append((pe, self._mappings.extents(cube, pe)))
            # A PE keeps its page table for the whole run, so a second launch maps nothing.
            self._mapped.add((cube, pe))
        return [MmuMapMsg(cube, tuple(of_cube)) for cube, of_cube in entries.items()]


class _Mappings:
    """The extents of a storage that each PE maps: without replicas, the same for all."""

    def __init__(self, storage: Storage) -> None:
        self._name, self._address = storage.name, storage.address
        # Each replica of a part by its PE, and the first one of each cube and of the SIP.
        self._replicas: dict[int, dict[_Holder, Shard]] = {}
        for shard in storage.shards:
            spec = shard.spec
            holders = self._replicas.setdefault(spec.offset_bytes, {})
            for holder in ((spec.cube, spec.pe), (spec.cube, None), (None, None)):
                holders.setdefault(holder, shard)
        shared = len(self._replicas) == len(storage.shards)
        self._common = self._of(None, None) if shared else None

    def extents(self, cube: int, pe: int) -> tuple[Extent, ...]:
        """The extents for a PE, in rising order."""
        return self._of(cube, pe) if self._common is None else self._common

    def _of(self, cube: int | None, pe: int | None) -> tuple[Extent, ...]:
        order: tuple[_Holder, ...] = ((cube, pe), (cube, None), (None, None))
        nearest = (
            (offset, next(holders[each] for each in order if each in holders))
            for offset, holders in sorted(self._replicas.items())
        )
        return tuple(
            Extent(self._address + offset, shard.spec.nbytes, shard.address, self._name)
            for offset, shard in nearest
            if shard.spec.nbytes
        )


@dataclass(frozen=True)
class Window:
    """A part of a storage from virtual `address` on: its shards, with offsets from `address`, and
    whether the virtual range holds the elements of the tensor in row-major order.
    """

    storage: Storage
    address: int
    shards: tuple[Shard, ...]
    is_flat: bool


def is_flat(shards: Iterable[Shard], shape: tuple[int, ...], itemsize: int) -> bool:
    """Whether the virtual range holds the elements of row-major shards in row-major order."""
    specs = {shard.spec.offset_bytes: shard.spec for shard in shards}
    for spec in specs.values():
        elements = _elements_of(spec.spans, shape)
        if elements is None or elements[0] * itemsize != spec.offset_bytes:
            return False
    return True


class _ShardPart(NamedTuple):
    """The part of a shard that a window overlaps: the number of the shard, the bytes of it before
    the window, and the part itself.
    """

    shard: int
    skipped_bytes: int
    spec: ShardSpec


def empty_shards(shards: Sequence[Shard], shape: tuple[int, ...]) -> tuple[Shard, ...]:
    """The shards of a window without elements: one empty shard, if there is a shard."""
    spans = tuple((0, length) for length in shape)
    return tuple(
        Shard(replace(shard.spec, offset_bytes=0, nbytes=0, spans=spans), shard.address)
        for shard in shards[:1]
    )


def _parts_of_window(
    specs: Sequence[ShardSpec], offset_bytes: int, shape: tuple[int, ...], itemsize: int
) -> tuple[_ShardPart, ...]:
    """The parts of shards that a window overlaps, without those of which it overlaps nothing."""
    end = offset_bytes + prod(shape) * itemsize
    parts: list[_ShardPart] = []
    for number, spec in enumerate(specs):
        low = max(offset_bytes, spec.offset_bytes)
        high = min(end, spec.offset_bytes + spec.nbytes)
        if low >= high:
            continue
        start, stop = low - offset_bytes, high - offset_bytes
        if start % itemsize or stop % itemsize:
            raise RuntimeError(
                f"view: an element of {itemsize} bytes would lie on two PEs: the shard on cube "
                f"{spec.cube} pe {spec.pe} has the bytes {start} to {stop} of the window"
            )
        spans = _spans_of(start // itemsize, stop // itemsize, shape)
        part = replace(spec, offset_bytes=start, nbytes=stop - start, spans=spans)
        parts.append(_ShardPart(number, low - spec.offset_bytes, part))
    return tuple(parts)


def _elements_of(spans: tuple[Span, ...], shape: tuple[int, ...]) -> Span | None:
    """The (start, stop) of a block among the row-major elements; None if it has gaps."""
    count = prod(stop - start for start, stop in spans)
    if not count:
        return 0, 0
    first, last, stride = 0, 0, 1
    for (start, stop), length in zip(reversed(spans), reversed(shape), strict=True):
        first, last = first + start * stride, last + (stop - 1) * stride
        stride *= length
    return (first, last + 1) if last - first + 1 == count else None


def _spans_of(first: int, last: int, shape: tuple[int, ...]) -> tuple[Span, ...]:
    """The block with the row-major elements [first, last), in spans of the axes if it is
    rectangular.
    """
    spans: list[Span] = []
    start, stop, stride = first, last, prod(shape)
    for axis, length in enumerate(shape):
        stride //= length
        if not start % stride and not stop % stride:
            rest = tuple((0, each) for each in shape[axis + 1 :])
            return (*spans, (start // stride, stop // stride), *rest)
        index = start // stride
        if index != (stop - 1) // stride:
            return ((first, last),)
        # One index of this axis holds all elements: the next axis is cut.
        spans.append((index, index + 1))
        start, stop = start - index * stride, stop - index * stride
    return tuple(spans)
