"""The methods of tensors that work on the device: fills, copies and transpositions.

They are launches of kernels of `tensor_kernels` in the current stream, on the PEs of
the tensor that is written, and do not wait. Of two placements for which no kernel exists, the host
reads the one and writes the other; they are listed at `copy_`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, cast

import numpy as np

from runtime.core.dtypes import DType, float16
from runtime.core.requests import PerPe
from runtime.device.kernels import copies as tensor_kernels
from runtime.device.launches.launch import launch_on
from runtime.device.memory.indexing import Index
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.operations.promotion import check_range, is_number
from runtime.device.streams.device import check_device, device
from runtime.language.value import Array, Pointer
from runtime.model.placement import DPPolicy, Placement, default_placement
from runtime.model.tile_placement import TilePlacement
from runtime.torch.tensors.tensor_reads import HostCopy, TensorReads

_ALIGN_ELEMENTS = 64
_TRANSPOSED_TILE = 64
_FILL_BYTES = 1 << 14
_FILL_STORES = 128
"""A fill stores one block at most this often, or blocks of `_FILL_BYTES`."""


class TensorMethods(TensorReads):
    """The methods that write tensors on the device."""

    def fill_(self, value: float) -> Self:
        """Set all elements, of every replica, to a number."""
        number = value.item() if isinstance(value, TensorReads) else value
        if is_number(value):
            check_range(value, self.dtype)
        element = np.asarray(number).astype(self.dtype.numpy).reshape(-1)
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
        return self._launch("fill_", tensor_kernels.fill, parts, exact, piece, local=True)

    def zero_(self) -> Self:
        """Set all elements to 0."""
        return self.fill_(0)

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
        return self._launch("copy_", tensor_kernels.copy, parts, size, source=source)

    def clone(self, *, dp: Placement | None = None) -> Self:
        """A copy with the same placement, or another one."""
        return self._new(self.dtype, dp).copy_(self)

    def contiguous(self) -> Self:
        """Itself if it is in row-major order in its virtual range, else a copy that is."""
        return self if self.is_flat else self._allocate(self.shape, self.dtype).copy_(self)

    def detach(self) -> Self:
        """Itself: there are no gradients."""
        return self

    def to(
        self,
        *wanted: object,
        dtype: DType | None = None,
        device: "device | str | int | None" = None,
        dp: Placement | None = None,
        non_blocking: bool = False,
        copy: bool = False,
    ) -> "Self | HostCopy":
        """This tensor with another element type or placement: a copy, or itself if nothing changes
        and `copy` is false. `to("cpu")` is `cpu()`.

        Arguments by position are an element type, a device, a placement, or a tensor whose type
        counts. `RuntimeError` for a device of another rank.
        """
        del non_blocking
        for each in wanted:
            if isinstance(each, DType):
                dtype = each
            elif isinstance(each, StoredTensor):
                dtype = each.dtype
            elif isinstance(each, DPPolicy | TilePlacement):
                dp = each
            elif each is not None and not isinstance(each, bool):
                device = _as_device(each)
        changed = self._changed(dtype or self.dtype, dp, copy=copy)
        if device is not None and _is_cpu(device):
            return changed.cpu()
        check_device("to", device)
        return changed

    def type_as(self, other: StoredTensor) -> Self:
        """A copy with the element type of `other`."""
        return self._changed(other.dtype)

    def t(self) -> Self:
        """The transposed matrix: a copy, unlike in PyTorch. A vector and a number are returned
        themselves.
        """
        if len(self.shape) > 2:
            axes = len(self.shape)
            raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {axes}D")
        return self if len(self.shape) < 2 else self._transposed()

    @property
    def T(self) -> Self:  # noqa: N802 - PyTorch's name
        """`t()`."""
        return self.t()

    def _transposed(self) -> Self:
        rows, columns = self.shape
        new = self._allocate((columns, rows), self.dtype)
        if not self.is_flat:
            return new._from_host(self.numpy().T)  # noqa: SLF001 - of the same class
        # As many rows of the result on each PE as possible; all PEs address all of both tensors.
        pes = [(shard.spec.cube, shard.spec.pe) for shard in new.shards]
        share = -(-columns // len(pes))
        parts = {
            pe: (min(at * share, columns), min((at + 1) * share, columns))
            for at, pe in enumerate(pes)
        }
        shape = (rows, columns)
        tile = max(1, min(_TRANSPOSED_TILE, int(self._piece(2 * self.itemsize) ** 0.5)))
        pointers = (Pointer(self.address, self.dtype), Pointer(new.address, self.dtype))
        arguments = (*pointers, shape, PerPe(parts), tile)
        launch_on("t", tensor_kernels.transpose, arguments, (self, new), pes)
        return new

    def _changed(self, dtype: DType, dp: Placement | None = None, *, copy: bool = False) -> Self:
        if dtype == self.dtype and (dp is None or dp == self.policy) and not copy:
            return self
        return self._new(dtype, dp).copy_(self)

    def _new(self, dtype: DType, dp: Placement | None) -> Self:
        """A tensor of this shape that is not written, by default with this placement."""
        layout = self.layout if dp is None else None
        policy = dp or self.policy_of_copies
        return type(self).allocate(self.shape, dtype, policy, self._state, layout)

    def _allocate(self, shape: tuple[int, ...], dtype: DType) -> Self:
        topology = self._state.topology
        cubes, pes = topology.cubes, topology.pes_per_cube
        policy = default_placement(shape, dtype.itemsize, cubes=cubes, pes=pes)
        return type(self).allocate(shape, dtype, policy, self._state)

    def __setitem__(
        self, index: Index, source: "StoredTensor | Array | Sequence[Any] | float"
    ) -> None:
        """As that of `StoredTensor`; `RuntimeError` for a number that the type cannot take. A
        float16 element becomes infinite, as in PyTorch.
        """
        if is_number(source) and self.dtype != float16:
            check_range(cast("float", source), self.dtype)
        super().__setitem__(index, source)

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


def _is_cpu(given: "device | str | int") -> bool:
    return device(given).type == "cpu"


def _as_device(given: object) -> "device | str | int":
    if isinstance(given, device | str | int):
        return given
    raise TypeError(
        "to() takes an element type, a device, a placement or a tensor, not "
        f"{type(given).__name__} {given!r}"
    )
