"""Tensors on the accelerator: a shape, an element type, and shards in the HBM of PEs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from runtime.core.dtypes import DType
from runtime.core.errors import nearest
from runtime.core.requests import Extent, MemoryReadMsg, MemoryWriteMsg, MmuMapMsg
from runtime.language.value import Array
from runtime.model.addresses import PhysAddr
from runtime.model.placement import DPPolicy, ShardSpec, Span, resolve_dp_policy
from runtime.model.tiling import Tiling
from runtime.torch.indexing import Block, Index, Selection, block_of, select
from runtime.torch.rank_state import RankState


@dataclass(frozen=True)
class Shard:
    """A shard and its physical address."""

    spec: ShardSpec
    address: int


class Tensor:
    """A tensor of one rank. Its elements live in simulated HBM; host access goes through simulated requests.

    A shard holds its elements in row-major order, or tile after tile as `layout` says.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        policy: DPPolicy,
        state: RankState,
        layout: Tiling | None = None,
    ) -> None:
        """Allocate, without writing. `ValueError` where the placement does not divide, `AllocationError` where it is full."""
        self.shape, self.dtype, self.policy, self.layout = shape, dtype, policy, layout
        if layout is not None and len(shape) != 2:
            raise ValueError(
                f"a layout in tiles is for matrices; a tensor of shape {shape} has {len(shape)} axes"
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
        self.address = state.virtual.alloc(max(self.nbytes, 1))
        self.shards: tuple[Shard, ...] = tuple(self._place(spec) for spec in specs)
        self._mapped: set[tuple[int, int]] = set()

    def _place(self, spec: ShardSpec) -> Shard:
        offset = self._state.memories.hbm(spec.cube, spec.pe).alloc(max(spec.nbytes, 1))
        return Shard(spec, self._state.addresses.pe_hbm_addr(*spec.coordinates, offset))

    def __del__(self) -> None:
        """Give the memory back. Requests already queued for it come before any for a tensor that takes its place.

        What would not, holds the tensor: a collective that overlaps with what is queued after it.
        """
        for shard in getattr(self, "shards", ()):
            where = PhysAddr.decode(shard.address, self._state.addresses)
            self._state.memories.hbm(where.cube, where.pe).free(where.offset)
        if hasattr(self, "shards"):
            self._state.virtual.free(self.address)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, copies not counted."""
        return self.numel() * self.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __repr__(self) -> str:
        """Shape, dtype, mean and L2 norm: it reads the tensor, which takes simulated time."""
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
            known = [each for each in dir(type(self)) if not each.startswith("_")]
            raise AttributeError(f"kernbench's Tensor has no {name}{nearest(name, known)}")

    def copy_(self, source: "Tensor | Array | Sequence[Any] | float") -> "Tensor":
        """Fill with `source`, broadcast to the shape and converted to the element type, and wait until it is written."""
        self[...] = source
        return self

    def numpy(self) -> Array:
        """The elements on the host, after all work queued before has been done. Of copies, the first one is read.

        In a run without data the result is a masked array: it has a shape and a dtype, but no element has a value.
        """
        return self[...]

    def __getitem__(self, index: Index) -> Array:
        """The selected elements on the host, as `numpy` gives them: a copy, for elements on the accelerator have no host view.

        An index selects whole shards or lies inside one; `IndexError` for one that goes across shards, and as in PyTorch.
        """
        selection = select(index, self.shape)
        extent = tuple(stop - start for start, stop in selection.spans)
        whole: Array = np.empty(extent, self.dtype.numpy)
        distinct: dict[tuple[Span, ...], tuple[Shard, Block]] = {}
        for shard, block in self._blocks(selection):
            distinct.setdefault(shard.spec.spans, (shard, block))
        for (_, block), part in zip(
            distinct.values(), self._read(list(distinct.values())), strict=True
        ):
            whole[block.index] = part
        return self._masked(whole.reshape(selection.shape))

    def __setitem__(self, index: Index, source: "Tensor | Array | Sequence[Any] | float") -> None:
        """Write the selected elements of every copy, as `copy_` does; indices are those of reading."""
        selection = select(index, self.shape)
        array = source.numpy() if isinstance(source, Tensor) else np.asarray(source)
        try:
            whole = np.broadcast_to(array, selection.shape)
        except ValueError:
            raise RuntimeError(
                f"The size of the source {tuple(array.shape)} must match or broadcast to the tensor's {selection.shape}"
            ) from None
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
        """(cube, pe, elements) of every shard as it is in memory: copies of the same elements one by one."""
        blocks = self._blocks(select(..., self.shape))
        places = [(shard.spec.cube, shard.spec.pe) for shard, _ in blocks]
        return [
            (*place, self._masked(part))
            for place, part in zip(places, self._read(blocks), strict=True)
        ]

    def map_requests(self, pes: Iterable[tuple[int, int]]) -> list[MmuMapMsg]:
        """The requests that make this tensor visible to (cube, pe); empty for those that see it already.

        A PE that holds a copy of some elements sees its own, another one the first copy of its cube, or else of the SIP.
        """
        orders: dict[int, list[tuple[int, tuple[Extent, ...]]]] = {}
        for cube, pe in sorted(set(pes) - self._mapped):
            orders.setdefault(cube, []).append((pe, self._extents(cube, pe)))
            self._mapped.add((cube, pe))
        return [MmuMapMsg(cube, tuple(entries)) for cube, entries in orders.items()]

    def _extents(self, cube: int, pe: int) -> tuple[Extent, ...]:
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
        """The shards that a selection touches, with its part in each."""
        distinct = dict.fromkeys(shard.spec.spans for shard in self.shards)
        parts = {spans: block_of(selection.spans, spans, self.layout) for spans in distinct}
        touched = [
            (shard, block)
            for shard in self.shards
            if (block := parts[shard.spec.spans]) is not None
        ]
        split = {
            shard.spec.spans
            for shard, block in touched
            if prod(block.shape) * self.itemsize < shard.spec.nbytes
        }
        if split and len({shard.spec.spans for shard, _ in touched}) > 1:
            first, second, *_ = dict.fromkeys(_as_index(shard.spec.spans) for shard, _ in touched)
            raise IndexError(
                f"{self.name}[{_as_index(selection.spans)}] goes across the shards [{first}] and [{second}] without taking "
                "them whole; index whole shards, or inside one"
            )
        return touched

    def _writes(self, shard: Shard, block: Block, whole: Array) -> Iterator[MemoryWriteMsg]:
        size = self.itemsize
        flat = whole[block.index].astype(self.dtype.numpy).reshape(-1)[block.order]
        data, done = flat.tobytes() if self._state.data else b"", 0
        for start, stop in block.runs:
            nbytes = (stop - start) * size
            yield MemoryWriteMsg(shard.address + start * size, nbytes, data[done : done + nbytes])
            done += nbytes

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
            flat = np.zeros(prod(block.shape), self.dtype.numpy)
            if data:
                flat[block.order] = np.frombuffer(data, self.dtype.numpy)
            parts.append(flat.reshape(block.shape))
        return parts

    def _masked(self, array: Array) -> Array:
        return array if self._state.data else np.ma.array(array, mask=True)

    def _wait(self, requests: Sequence[MemoryReadMsg | MemoryWriteMsg], why: str) -> list[bytes]:
        device = self._state.device
        return device.wait(
            device.submit(requests, f"{why} ({self.name})", tensors=frozenset((self.name,)))
        ).results


def _as_index(spans: Sequence[Span]) -> str:
    return ", ".join(f"{start}:{stop}" for start, stop in spans)
