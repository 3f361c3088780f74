"""Tensors on the accelerator: a shape, an element type, and shards in the HBM of PEs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.dtypes import DType, float32
from runtime.language.value import Array
from runtime.placement import ONE_PE, DPPolicy, ShardSpec, resolve_dp_policy
from runtime.rank_state import RankState, running_rank
from runtime.requests import Extent, MemoryReadMsg, MemoryWriteMsg, MmuMapMsg


@dataclass(frozen=True)
class Shard:
    """A shard and its physical address."""

    spec: ShardSpec
    address: int


class Tensor:
    """A tensor of one rank. Its elements live in simulated HBM; host access goes through simulated requests."""

    def __init__(self, shape: tuple[int, ...], dtype: DType, policy: DPPolicy, state: RankState) -> None:
        """Allocate, without writing. `ValueError` where the placement does not divide, `AllocationError` where it is full."""
        self.shape, self.dtype, self.policy = shape, dtype, policy
        self._state = state
        topology = state.topology
        specs = resolve_dp_policy(
            policy, shape, dtype.itemsize, cubes=topology.cubes, pes=topology.pes_per_cube, target_sip=state.rank
        )
        state.tensors += 1
        self.name = f"t{state.tensors}{list(shape)}"
        self.address = state.virtual.alloc(max(self.nbytes, 1))
        self.shards: tuple[Shard, ...] = tuple(self._place(spec) for spec in specs)
        self._mapped: set[tuple[int, int]] = set()

    def _place(self, spec: ShardSpec) -> Shard:
        offset = self._state.memories.hbm(spec.cube, spec.pe).alloc(max(spec.nbytes, 1))
        return Shard(spec, self._state.addresses.pe_hbm_addr(*spec.place, offset))

    def __del__(self) -> None:
        """Give the memory back. Requests already queued for it come before any for a tensor that takes its place."""
        for shard in getattr(self, "shards", ()):
            where = self._state.addresses.decode(shard.address)
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
        return f"tensor({described}, mean={mean:.6g}, norm={np.linalg.norm(values.reshape(-1)):.6g})"

    def copy_(self, source: "Tensor | Array | Sequence[Any] | float") -> "Tensor":
        """Fill with `source`, broadcast to the shape and converted to the element type, and wait until it is written."""
        array = source.numpy() if isinstance(source, Tensor) else np.asarray(source)
        try:
            whole = np.broadcast_to(array, self.shape)
        except ValueError:
            raise RuntimeError(
                f"The size of the source {tuple(array.shape)} must match or broadcast to the tensor's {self.shape}"
            ) from None
        writes = [self._write(shard, whole) for shard in self.shards if shard.spec.nbytes]
        self._wait(writes, "copy_")
        return self

    def numpy(self) -> Array:
        """The elements on the host, after all work queued before has been done. Of copies, the first one is read.

        In a run without data the result is a masked array: it has a shape and a dtype, but no element has a value.
        """
        distinct = {shard.spec.spans: shard for shard in reversed(self.shards)}
        whole: Array = np.empty(self.shape, self.dtype.numpy)
        shards = [shard for shard in reversed(distinct.values()) if shard.spec.nbytes]
        for shard, part in zip(shards, self._read(shards), strict=True):
            whole[shard.spec.index] = part
        return whole if self._state.data else np.ma.array(whole, mask=True)

    def copies(self) -> list[tuple[int, int, Array]]:
        """(cube, pe, elements) of every shard as it is in memory: copies of the same elements one by one."""
        parts = self._read(self.shards)
        return [(shard.spec.cube, shard.spec.pe, part) for shard, part in zip(self.shards, parts, strict=True)]

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

    def _write(self, shard: Shard, whole: Array) -> MemoryWriteMsg:
        part = whole[shard.spec.index].astype(self.dtype.numpy)
        return MemoryWriteMsg(shard.address, shard.spec.nbytes, part.tobytes() if self._state.data else b"")

    def _read(self, shards: Sequence[Shard]) -> list[Array]:
        reads = [MemoryReadMsg(shard.address, shard.spec.nbytes) for shard in shards if shard.spec.nbytes]
        results = iter(self._wait(reads, "reading a tensor"))
        parts: list[Array] = []
        for shard in shards:
            shape = tuple(stop - start for start, stop in shard.spec.spans)
            data = next(results) if shard.spec.nbytes else b""
            flat = np.frombuffer(data, self.dtype.numpy) if data else np.zeros(prod(shape), self.dtype.numpy)
            parts.append(flat.reshape(shape))
        return parts

    def _wait(self, requests: Sequence[MemoryReadMsg | MemoryWriteMsg], why: str) -> list[bytes]:
        device = self._state.device
        return device.wait(device.submit(requests, f"{why} ({self.name})")).results


def empty(*size: int | Sequence[int], dtype: DType = float32, dp: DPPolicy = ONE_PE) -> Tensor:
    """A tensor whose elements are what the memory held."""
    return Tensor(_size(size), dtype, dp, running_rank())


def full(size: int | Sequence[int], fill_value: float, *, dtype: DType = float32, dp: DPPolicy = ONE_PE) -> Tensor:
    """A tensor of one value; `RuntimeError` for a value that an integer type does not hold."""
    if not dtype.holds(fill_value):
        raise RuntimeError(f"value {fill_value} cannot be converted to type {dtype.torch_name} without overflow")
    return Tensor(_size((size,)), dtype, dp, running_rank()).copy_(np.asarray(fill_value))


def zeros(*size: int | Sequence[int], dtype: DType = float32, dp: DPPolicy = ONE_PE) -> Tensor:
    """A tensor of zeros."""
    return full(_size(size), 0, dtype=dtype, dp=dp)


def ones(*size: int | Sequence[int], dtype: DType = float32, dp: DPPolicy = ONE_PE) -> Tensor:
    """A tensor of ones."""
    return full(_size(size), 1, dtype=dtype, dp=dp)


def from_numpy(array: Array, *, dp: DPPolicy = ONE_PE) -> Tensor:
    """A tensor with the elements of `array`; `TypeError` for an element type the hardware does not have."""
    return Tensor(tuple(array.shape), dtypes.from_numpy(array.dtype), dp, running_rank()).copy_(array)


def _size(size: Sequence[int | Sequence[int]]) -> tuple[int, ...]:
    flat = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    shape = tuple(int(length) for length in flat)  # pyright: ignore[reportArgumentType] - the sequence is flat by now
    if any(length < 0 for length in shape):
        raise RuntimeError(f"Trying to create tensor with negative dimension: {shape}")
    return shape
