"""Elements in the simulated memory of one SIP: where they are, and how the host reads and writes
them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Self

import numpy as np

from runtime.core.device import Handle
from runtime.core.dtypes import DType
from runtime.core.garbage_collection import refuse_in_collection
from runtime.core.requests import MemoryReadMsg, MemoryWriteMsg, MmuMapMsg
from runtime.device.memory.indexing import (
    Block,
    Index,
    Selection,
    block_of,
    in_range,
    positions_of,
    select,
)
from runtime.device.memory.placed import placed
from runtime.device.memory.storage import Storage, Window, empty_shards, is_flat
from runtime.device.rank.rank_state import RankState
from runtime.device.rank.tensor_memory import Shard
from runtime.language.value import Array
from runtime.model.blocked_layout import BlockedLayout
from runtime.model.placement import Placement, default_placement


class StoredTensor:
    """A window of a storage, with a shape and an element type.

    `address` is the virtual address of its first byte on this SIP. `shards` are in (cube, pe)
    order, with offsets from `address`; those of a window may have unequal sizes, and a PE that
    holds no element of the window has none. A tensor is flat if its virtual range holds its
    elements in row-major order. A shard holds its elements in row-major order, or tile after tile
    with a `layout`.
    """

    def __init__(
        self,
        state: RankState,
        window: Window,
        *,
        shape: tuple[int, ...],
        dtype: DType,
        policy: Placement,
        layout: BlockedLayout | None,
    ) -> None:
        self._state, self.storage = state, window.storage
        self.shape, self.dtype, self.policy, self.layout = shape, dtype, policy, layout
        self.address, self.shards, self.is_flat = window.address, window.shards, window.is_flat

    @classmethod
    def allocate(
        cls,
        shape: tuple[int, ...],
        dtype: DType,
        policy: Placement,
        state: RankState,
        layout: BlockedLayout | None = None,
    ) -> Self:
        """A tensor that is not written. `ValueError` if the shape does not divide over the PEs,
        `AllocationError` if a slice is full.
        """
        if layout is not None and len(shape) != 2:
            raise ValueError(
                f"a layout in tiles is for matrices; a tensor of shape {shape} has "
                f"{len(shape)} axes"
            )
        specs = placed(policy, shape, dtype.itemsize, state)
        state.tensors += 1
        name = f"t{state.tensors}{list(shape)}"
        allocation = state.memory.allocate(specs, prod(shape) * dtype.itemsize)
        storage = Storage(name, allocation, dtype.itemsize)
        flat = layout is None and is_flat(storage.shards, shape, dtype.itemsize)
        window = Window(storage, storage.address, storage.shards, flat)
        return cls(state, window, shape=shape, dtype=dtype, policy=policy, layout=layout)

    def new(self, shape: tuple[int, ...], dtype: DType) -> Self:
        """A tensor of the same rank that is not written, in the default placement of its shape."""
        pes = self._state.pes
        policy = default_placement(shape, dtype.itemsize, cubes=pes.cubes, pes=pes.per_cube)
        return type(self).allocate(shape, dtype, policy, self._state)

    def like(self, shape: tuple[int, ...], dtype: DType, elements: int = 1) -> Self:
        """A tensor that is not written, each element of which lies where `elements` elements of
        this one lie.
        """
        state, old = self._state, elements * self.itemsize
        specs = [
            replace(
                shard.spec,
                offset_bytes=shard.spec.offset_bytes // old * dtype.itemsize,
                nbytes=shard.spec.nbytes // old * dtype.itemsize,
            )
            for shard in self.shards
        ]
        state.tensors += 1
        allocation = state.memory.allocate(specs, prod(shape) * dtype.itemsize)
        storage = Storage(f"t{state.tensors}{list(shape)}", allocation, dtype.itemsize)
        shards = storage.shards
        if elements > 1 or shape != self.shape:
            # Computes the spans of the shards in the new shape.
            shards = storage.window_shards(0, shape, dtype.itemsize)
        window = Window(storage, storage.address, shards, self.is_flat)
        return type(self)(
            state, window, shape=shape, dtype=dtype, policy=self.policy, layout=self.layout
        )

    @property
    def state(self) -> RankState:
        """The state of the rank."""
        return self._state

    @property
    def name(self) -> str:
        """The name of the storage, by which commands are ordered."""
        return self.storage.name

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements; replicas count once."""
        return self.numel() * self.itemsize

    @property
    def policy_of_copies(self) -> Placement:
        """The placement of a new tensor like this one: the same, except for a window that its
        policy does not describe, which has the default placement of its shape.
        """
        pes = self._state.pes
        default = default_placement(self.shape, self.itemsize, cubes=pes.cubes, pes=pes.per_cube)
        try:
            specs = placed(self.policy, self.shape, self.itemsize, self._state)
        except ValueError:
            return default
        return self.policy if specs == tuple(shard.spec for shard in self.shards) else default

    def numpy(self) -> Array:
        """The elements on the host, after all work queued before. Of replicas, the first one is
        read.

        In a run without data the result is a masked array: it has a shape and a dtype, but its
        elements have no values.
        """
        return self[...]

    def copies(self) -> list[tuple[int, int, Array]]:
        """(cube, pe, elements) of every shard as it is in memory, every replica by itself.

        The elements have the shape of the shard's spans.
        """
        blocks = self._blocks(select(..., self.shape))
        return [
            (
                shard.spec.cube,
                shard.spec.pe,
                self._masked(part.reshape([stop - start for start, stop in shard.spec.spans])),
            )
            for (shard, _), part in zip(blocks, self._read(blocks), strict=True)
        ]

    def map_requests(self, pes: Iterable[tuple[int, int]]) -> list[MmuMapMsg]:
        """The requests that map the storage on PEs given as (cube, pe), as `Storage` does."""
        return self.storage.map_requests(pes)

    def __getitem__(self, index: Index) -> Array:
        """A copy of the selected elements on the host; a window on the device is made by `view`,
        `narrow` and `split`.

        `IndexError` as in PyTorch, `ValueError` for a step other than 1.
        """
        selection = select(index, self.shape)
        extent = tuple(stop - start for start, stop in selection.spans)
        # Without data the elements stay 0 below the mask, and no page of the array is touched.
        whole: Array = np.zeros(prod(extent) if self.is_flat else extent, self.dtype.numpy)
        # Replicas have equal offsets: reading one of them is enough.
        distinct: dict[int, tuple[Shard, Block]] = {}
        for shard, block in self._blocks(selection):
            distinct.setdefault(shard.spec.offset_bytes, (shard, block))
        parts = self._read(list(distinct.values()))
        if self._state.data:
            for (_, block), part in zip(distinct.values(), parts, strict=True):
                whole[block.index] = part
        return self._masked(whole.reshape(selection.shape))

    def __setitem__(
        self, index: Index, source: "StoredTensor | Array | Sequence[Any] | float"
    ) -> None:
        """Write the selected elements of every replica: `source` is broadcast to their shape and
        converted to the element type. The rules for indices are those of reading.
        """
        selection = select(index, self.shape)
        array = source.numpy() if isinstance(source, StoredTensor) else np.asarray(source)
        try:
            whole: Array | None = np.broadcast_to(array, selection.shape)
        except ValueError:
            raise RuntimeError(
                f"The size of the source {tuple(array.shape)} must match or broadcast to the "
                f"tensor's {selection.shape}"
            ) from None
        # Integers in the index have removed their axes; the blocks are cut from the full number of
        # axes. A run without data writes no bytes, and would only copy the broadcast elements.
        spans = [stop - start for start, stop in selection.spans]
        whole = whole.reshape(-1 if self.is_flat else spans) if self._state.data else None
        self._submit(
            list(self._writes(self._blocks(selection), whole)),
            "copy_",
        )

    def make_zero(self) -> None:
        """Write 0 to all elements, unless nothing has used the memory since the run began: it is
        zero then, and the write would take time.
        """
        if not self.storage.is_zero():
            self[...] = 0

    def _window(self, dtype: DType, offset_bytes: int, shape: tuple[int, ...]) -> Self:
        """A window of this tensor, which is flat."""
        storage, address = self.storage, self.address + offset_bytes
        shards = (
            storage.window_shards(address - storage.address, shape, dtype.itemsize)
            if prod(shape)
            else empty_shards(self.shards, shape)
        )
        window = Window(storage, address, shards, is_flat=True)
        return type(self)(
            self._state, window, shape=shape, dtype=dtype, policy=self.policy, layout=None
        )

    def _blocks(self, selection: Selection) -> list[tuple[Shard, Block]]:
        """The shards that a selection overlaps, with its part in each."""
        # Replicas have equal blocks.
        parts: dict[int, Block | None] = {}
        positions = positions_of(selection.spans, self.shape) if self.is_flat else range(0)
        for shard in self.shards:
            offset, first = shard.spec.offset_bytes, shard.spec.offset_bytes // self.itemsize
            if offset not in parts:
                parts[offset] = (
                    in_range(positions, first, first + shard.spec.nbytes // self.itemsize)
                    if self.is_flat
                    else block_of(selection.spans, shard.spec.spans, self.layout)
                )
        return [
            (shard, block)
            for shard in self.shards
            if (block := parts[shard.spec.offset_bytes]) is not None
        ]

    def _writes(
        self, blocks: Sequence[tuple[Shard, Block]], whole: Array | None
    ) -> Iterator[MemoryWriteMsg]:
        size = self.itemsize
        # Replicas have equal bytes.
        contents: dict[int, bytes] = {}
        for shard, block in blocks:
            data, written = contents.get(shard.spec.offset_bytes), 0
            if data is None:
                data = b"" if whole is None else self._bytes_of(whole[block.index], block)
                contents[shard.spec.offset_bytes] = data
            for start, stop in block.runs:
                nbytes = (stop - start) * size
                yield MemoryWriteMsg(
                    shard.address + start * size, nbytes, data[written : written + nbytes]
                )
                written += nbytes

    def _bytes_of(self, elements: Array, block: Block) -> bytes:
        """The elements of a block in the order of memory."""
        return block.packed(elements.astype(self.dtype.numpy)).tobytes()

    def _read(self, blocks: Sequence[tuple[Shard, Block]]) -> list[Array]:
        size = self.itemsize
        reads = [
            MemoryReadMsg(shard.address + start * size, (stop - start) * size)
            for shard, block in blocks
            for start, stop in block.runs
        ]
        results = iter(self._wait(reads, "reading a tensor"))
        parts: list[Array] = []
        for _, block in blocks:
            data = b"".join(next(results) for _ in block.runs)
            # Without data the memory returns no bytes, and the elements are 0 below the mask.
            parts.append(
                block.unpacked(np.frombuffer(data, self.dtype.numpy))
                if data
                else np.zeros(block.shape, self.dtype.numpy)
            )
        return parts

    def _masked(self, array: Array) -> Array:
        return array if self._state.data else np.ma.array(array, mask=True)

    def _wait(self, requests: Sequence[MemoryReadMsg], why: str) -> list[bytes]:
        return self._state.device.wait(self._submit(requests, why)).results

    def _submit(self, requests: Sequence[MemoryReadMsg | MemoryWriteMsg], why: str) -> Handle:
        # Before the submission, which would be part of the run.
        refuse_in_collection()
        device = self._state.device
        handle = device.submit(requests, f"{why} ({self.name})", tensors=frozenset((self.name,)))
        self._state.hold(handle, (self,))
        return handle
