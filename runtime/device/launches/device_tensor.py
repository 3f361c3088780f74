"""Tensors of the device: fills and copies that its PEs make.

They are launches of kernels of `copies` in the current stream, on the PEs of the tensor
that is written, and do not wait. Between two placements for which no kernel exists, the host reads
one tensor and writes the other; `copy_` lists them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from runtime.core.requests import PerPe
from runtime.device.kernels import copies
from runtime.device.launches.launch import launch_on
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.memory.tensor_views import TensorViews
from runtime.language.value import Array, Pointer

_ALIGN_ELEMENTS = 64
_FILL_BYTES = 1 << 14
_FILL_STORES = 128
"""A fill stores one block at most this often, or blocks of `_FILL_BYTES`."""


class DeviceTensor(TensorViews):
    """A tensor whose elements kernels of the device write."""

    def fill_(self, value: float) -> Self:
        """Set all elements, of every replica, to a number."""
        element = np.asarray(value).astype(self.dtype.numpy).reshape(-1)
        exact = int(element[0]) if not self.dtype.is_floating_point else float(element[0])
        parts: dict[tuple[int, int], list[tuple[Pointer, int]]] = {}
        for shard in self.shards:
            spec = shard.spec
            target = Pointer(self.address + spec.offset_bytes, self.dtype)
            parts.setdefault((spec.cube, spec.pe), []).append(
                (target, spec.nbytes // self.itemsize)
            )
        longest = max(shard.spec.nbytes for shard in self.shards)
        # A block that takes little time beside its stores; a sum takes a second one.
        piece = min(
            self._piece(2 * self.itemsize),
            max(_FILL_BYTES, -(-longest // _FILL_STORES)) // self.itemsize,
        )
        return self._launch("fill_", copies.fill, parts, exact, piece, local=True)

    def copy_(
        self,
        source: "StoredTensor | Array | Sequence[Any] | float",
        non_blocking: bool = False,  # noqa: FBT001, FBT002 - PyTorch's signature
    ) -> Self:
        """Write `source`, broadcast to the shape and converted to the element type; the call does
        not wait for it.

        Another tensor of the same shape is copied on the device, if both are in row-major order in
        their virtual ranges or both have one placement. Anything else passes through the host: an
        array, another shape, a placement by columns beside another one, overlapping windows.
        """
        del non_blocking
        if not isinstance(source, StoredTensor):
            return self._from_host(source)
        alike = [each.spec.spans for each in source.shards] == [
            each.spec.spans for each in self.shards
        ] and source.layout == self.layout
        here = [(each.spec.cube, each.spec.pe) for each in self.shards]
        there = [(each.spec.cube, each.spec.pe) for each in source.shards]
        local = alike and here == there
        if source.shape != self.shape or not (local or (self.is_flat and source.is_flat)):
            return self._from_host(source)
        if source.storage is self.storage and self._overlaps(source):
            return self if self._is_same(source) else self._from_host(source)
        size = self._piece(self.itemsize + source.itemsize)
        parts: dict[tuple[int, int], list[tuple[Pointer, Pointer, int]]] = {}
        for shard in self.shards:
            spec, first = shard.spec, shard.spec.offset_bytes // self.itemsize
            target = Pointer(self.address + spec.offset_bytes, self.dtype)
            origin = Pointer(source.address + first * source.itemsize, source.dtype)
            count = spec.nbytes // self.itemsize
            parts.setdefault((spec.cube, spec.pe), []).append((origin, target, count))
        return self._launch("copy_", copies.copy, parts, size, source=source)

    def contiguous(self) -> Self:
        """Itself if it is in row-major order in its virtual range, else a copy that is."""
        return self if self.is_flat else self.new(self.shape, self.dtype).copy_(self)

    def _from_host(self, source: "StoredTensor | Array | Sequence[Any] | float") -> Self:
        self[...] = source
        return self

    def _launch(
        self,
        name: str,
        kernel: Callable[..., None],
        parts: Mapping[tuple[int, int], Sequence[tuple[object, ...]]],
        *arguments: object,
        source: StoredTensor | None = None,
        local: bool = False,
    ) -> Self:
        """Run `kernel(parts, *arguments)` on the PEs that have parts with elements. Other SIPs need
        not wait for what a `local` kernel sends.
        """
        known = {pe: tuple(part for part in of_pe if part[-1]) for pe, of_pe in parts.items()}
        pes = sorted(pe for pe, of_pe in known.items() if of_pe)
        if pes:
            tensors = (self,) if source is None else (self, source)
            every = (PerPe({pe: known[pe] for pe in pes}), *arguments)
            launch_on(name, kernel, every, tensors, pes, local=local)
        return self

    def _piece(self, bytes_per_element: int) -> int:
        """The elements that fit the scratch of a kernel, if each takes this many bytes."""
        elements = self._state.topology.kernel_scratch_bytes // bytes_per_element
        return max(1, elements - elements % _ALIGN_ELEMENTS)

    def _overlaps(self, other: StoredTensor) -> bool:
        return (
            self.address < other.address + other.nbytes
            and other.address < self.address + self.nbytes
        )

    def _is_same(self, other: StoredTensor) -> bool:
        return (self.address, self.dtype, self.shards) == (other.address, other.dtype, other.shards)
