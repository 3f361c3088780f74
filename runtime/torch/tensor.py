"""Tensors on the accelerator: a shape, an element type, and shards in the HBM slices of PEs."""

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from runtime.core.dtypes import DType
from runtime.core.errors import nearest
from runtime.core.garbage_collection import refuse_in_collection
from runtime.core.requests import Extent, MemoryReadMsg, MemoryWriteMsg, MmuMapMsg
from runtime.language.value import Array
from runtime.model.blocked_layout import BlockedLayout
from runtime.model.placement import Placement, Span, resolve_dp_policy
from runtime.torch.indexing import Block, Index, Selection, block_of, select
from runtime.torch.rank_state import RankState
from runtime.torch.tensor_memory import Shard


class Tensor:
    """A tensor of one rank. Its elements are in simulated HBM, and the host accesses them by
    simulated requests.

    A shard holds its elements in row-major order, or tile after tile with a `layout`.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        policy: Placement,
        state: RankState,
        layout: BlockedLayout | None = None,
    ) -> None:
        """Allocate without writing. `ValueError` if the shape does not divide over the PEs,
        `AllocationError` if a slice is full.
        """
        self.shape, self.dtype, self.policy, self.layout = shape, dtype, policy, layout
        if layout is not None and len(shape) != 2:
            raise ValueError(
                f"a layout in tiles is for matrices; a tensor of shape {shape} has "
                f"{len(shape)} axes"
            )
        self._state = state
        topology = state.topology
        specs = resolve_dp_policy(
            policy,
            shape,
            dtype.itemsize,
            cubes=topology.cubes,
            pes=topology.pes_per_cube,
            target_sip=state.rank,
        )
        state.tensors += 1
        self.name = f"t{state.tensors}{list(shape)}"
        # Freed some time after the tensor dies, and so after its requests: the device serves queued
        # requests in order, so those of this tensor come before those of a later tensor in the same
        # memory. A collective that overlaps with later work holds its tensors until it is complete.
        self._allocation = state.memory.allocate(specs, self.nbytes)
        self.address, self.shards = self._allocation.address, self._allocation.shards
        self._mapped: set[tuple[int, int]] = set()

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

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __repr__(self) -> str:
        """Shape, dtype, mean and L2 norm. It reads the tensor, which takes simulated time."""
        described = f"shape={self.shape}, dtype={self.dtype!r}"
        if not self._state.data:
            return f"tensor({described}, no data)"
        values = self.numpy().astype(np.float64)
        mean = values.mean() if values.size else float("nan")
        return (
            f"tensor({described}, mean={mean:.6g}, norm={np.linalg.norm(values.reshape(-1)):.6g})"
        )

    if not TYPE_CHECKING:
        # With this method in sight, a type checker would accept every attribute.
        def __getattr__(self, name: str) -> NoReturn:
            # The methods and properties, without the attributes that `__init__` sets.
            known = [each for each in dir(type(self)) if not each.startswith("_")]
            raise AttributeError(f"kernbench's Tensor has no {name}{nearest(name, known)}")

    def copy_(self, source: "Tensor | Array | Sequence[Any] | float") -> "Tensor":
        """Write `source`, broadcast to the shape and converted to the element type, and wait until
        it is written.
        """
        self[...] = source
        return self

    def numpy(self) -> Array:
        """The elements on the host, after all work queued before. Of replicas, the first one is
        read.

        In a run without data the result is a masked array: it has a shape and a dtype, but its
        elements have no values.
        """
        return self[...]

    def __getitem__(self, index: Index) -> Array:
        """A copy of the selected elements on the host; the host has no view of elements on the
        accelerator.

        An index selects whole shards, or elements of one shard. `IndexError` if it crosses shards,
        and as in PyTorch.
        """
        selection = select(index, self.shape)
        extent = tuple(stop - start for start, stop in selection.spans)
        whole: Array = np.empty(extent, self.dtype.numpy)
        # Replicas have equal spans: reading one of them is enough.
        distinct: dict[tuple[Span, ...], tuple[Shard, Block]] = {}
        for shard, block in self._blocks(selection):
            distinct.setdefault(shard.spec.spans, (shard, block))
        for (_, block), part in zip(
            distinct.values(), self._read(list(distinct.values())), strict=True
        ):
            whole[block.index] = part
        return self._masked(whole.reshape(selection.shape))

    def __setitem__(self, index: Index, source: "Tensor | Array | Sequence[Any] | float") -> None:
        """Write the selected elements of every replica, as `copy_` does; the rules for indices are
        those of reading.
        """
        selection = select(index, self.shape)
        array = source.numpy() if isinstance(source, Tensor) else np.asarray(source)
        try:
            whole = np.broadcast_to(array, selection.shape)
        except ValueError:
            raise RuntimeError(
                f"The size of the source {tuple(array.shape)} must match or broadcast to the "
                f"tensor's {selection.shape}"
            ) from None
        # Integers in the index have removed their axes; the blocks are cut from the full number of
        # axes.
        whole = whole.reshape([stop - start for start, stop in selection.spans])
        self._wait(
            [
                write
                for shard, block in self._blocks(selection)
                for write in self._writes(shard, block, whole)
            ],
            "copy_",
        )

    def copies(self) -> list[tuple[int, int, Array]]:
        """(cube, pe, elements) of every shard as it is in memory, every replica by itself."""
        blocks = self._blocks(select(..., self.shape))
        pes = [(shard.spec.cube, shard.spec.pe) for shard, _ in blocks]
        return [(*pe, self._masked(part)) for pe, part in zip(pes, self._read(blocks), strict=True)]

    def map_requests(self, pes: Iterable[tuple[int, int]]) -> list[MmuMapMsg]:
        """The requests that map this tensor on PEs given as (cube, pe), without those on which it
        is mapped already.

        Of replicas, a PE maps its own, else the first one of its cube, else the first one of the
        SIP.
        """
        entries: dict[int, list[tuple[int, tuple[Extent, ...]]]] = {}
        for cube, pe in sorted(set(pes) - self._mapped):
            entries.setdefault(cube, []).append((pe, self._extents(cube, pe)))
            # A PE keeps its page table for the whole run, so a second launch maps nothing.
            self._mapped.add((cube, pe))
        return [MmuMapMsg(cube, tuple(of_cube)) for cube, of_cube in entries.items()]

    def _extents(self, cube: int, pe: int) -> tuple[Extent, ...]:
        # False sorts before True: the own shard, then one of the own cube, then any other.
        def distance(shard: Shard) -> tuple[bool, bool]:
            return shard.spec.cube != cube, shard.spec.cube != cube or shard.spec.pe != pe

        nearest: dict[int, Shard] = {}
        for shard in self.shards:
            known = nearest.get(shard.spec.offset_bytes)
            if known is None or distance(shard) < distance(known):
                nearest[shard.spec.offset_bytes] = shard
        return tuple(
            Extent(self.address + offset, shard.spec.nbytes, shard.address, self.name)
            for offset, shard in sorted(nearest.items())
            if shard.spec.nbytes
        )

    def _blocks(self, selection: Selection) -> list[tuple[Shard, Block]]:
        """The shards that a selection overlaps, with its part in each."""
        distinct = dict.fromkeys(shard.spec.spans for shard in self.shards)
        parts = {spans: block_of(selection.spans, spans, self.layout) for spans in distinct}
        overlapped = [
            (shard, block)
            for shard in self.shards
            if (block := parts[shard.spec.spans]) is not None
        ]
        split = {
            shard.spec.spans
            for shard, block in overlapped
            if prod(block.shape) * self.itemsize < shard.spec.nbytes
        }
        if split and len({shard.spec.spans for shard, _ in overlapped}) > 1:
            first, second, *_ = dict.fromkeys(
                _as_index(shard.spec.spans) for shard, _ in overlapped
            )
            raise IndexError(
                f"{self.name}[{_as_index(selection.spans)}] crosses the shards [{first}] and "
                f"[{second}] and takes a part of one; index whole shards, or elements of one shard"
            )
        return overlapped

    def _writes(self, shard: Shard, block: Block, whole: Array) -> Iterator[MemoryWriteMsg]:
        size = self.itemsize
        flat = whole[block.index].astype(self.dtype.numpy).reshape(-1)[block.order]
        data, written = flat.tobytes() if self._state.data else b"", 0
        for start, stop in block.runs:
            nbytes = (stop - start) * size
            yield MemoryWriteMsg(
                shard.address + start * size, nbytes, data[written : written + nbytes]
            )
            written += nbytes

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
            # Without data the memory returns no bytes, and the elements stay 0 below the mask.
            flat = np.zeros(prod(block.shape), self.dtype.numpy)
            if data:
                flat[block.order] = np.frombuffer(data, self.dtype.numpy)
            parts.append(flat.reshape(block.shape))
        return parts

    def _masked(self, array: Array) -> Array:
        return array if self._state.data else np.ma.array(array, mask=True)

    def _wait(self, requests: Sequence[MemoryReadMsg | MemoryWriteMsg], why: str) -> list[bytes]:
        # Before the submission, which would be part of the run.
        refuse_in_collection()
        device = self._state.device
        return device.wait(
            device.submit(requests, f"{why} ({self.name})", tensors=frozenset((self.name,)))
        ).results


def _as_index(spans: Sequence[Span]) -> str:
    return ", ".join(f"{start}:{stop}" for start, stop in spans)
