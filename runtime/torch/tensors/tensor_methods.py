"""The methods of tensors that work on the device: fills, copies and transpositions.

They are launches of kernels of `copies` in the current stream, on the PEs of
the tensor that is written, and do not wait. Of two placements for which no kernel exists, the host
reads the one and writes the other; they are listed at `copy_`.
"""

from collections.abc import Sequence
from typing import Any, Self, cast

from runtime.core.dtypes import DType, float16
from runtime.core.requests import PerPe
from runtime.device.kernels import copies
from runtime.device.launches.launch import launch_on
from runtime.device.memory.indexing import Index
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.operations.promotion import check_range, is_number
from runtime.device.streams.device import check_device, device
from runtime.language.value import Array, Pointer
from runtime.model.placement import DPPolicy, Placement
from runtime.model.tile_placement import TilePlacement
from runtime.torch.tensors.tensor_reads import HostCopy, TensorReads

_TRANSPOSED_TILE = 64


class TensorMethods(TensorReads):
    """The methods that write tensors on the device."""

    def fill_(self, value: float) -> Self:
        """Set all elements, of every replica, to a number, or to the one element of a tensor."""
        if is_number(value):
            check_range(value, self.dtype)
        return super().fill_(value.item() if isinstance(value, TensorReads) else value)

    def zero_(self) -> Self:
        """Set all elements to 0."""
        return self.fill_(0)

    def clone(self, *, dp: Placement | None = None) -> Self:
        """A copy with the same placement, or another one."""
        return self._new(self.dtype, dp).copy_(self)

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
        """The tensor with another element type or placement: a copy, or itself if nothing changes
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
        new = self.new((columns, rows), self.dtype)
        if not self.is_flat:
            return new._from_host(self.numpy().T)  # noqa: SLF001 - of the same class
        # As many rows of the result on each PE as possible; all PEs address all of both tensors.
        pes = [(shard.spec.cube, shard.spec.pe) for shard in new.shards]
        share = -(-columns // len(pes))
        parts = {
            pe: (min(number * share, columns), min((number + 1) * share, columns))
            for number, pe in enumerate(pes)
        }
        shape = (rows, columns)
        tile = max(1, min(_TRANSPOSED_TILE, int(self._piece(2 * self.itemsize) ** 0.5)))
        pointers = (Pointer(self.address, self.dtype), Pointer(new.address, self.dtype))
        arguments = (*pointers, shape, PerPe(parts), tile)
        launch_on("t", copies.transpose, arguments, (self, new), pes)
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

    def __setitem__(
        self, index: Index, source: "StoredTensor | Array | Sequence[Any] | float"
    ) -> None:
        """Assign as `StoredTensor` does; `RuntimeError` for a number that the type cannot take. A
        float16 element becomes infinite, as in PyTorch.
        """
        if is_number(source) and self.dtype != float16:
            check_range(cast("float", source), self.dtype)
        super().__setitem__(index, source)


def _is_cpu(given: "device | str | int") -> bool:
    return device(given).type == "cpu"


def _as_device(given: object) -> "device | str | int":
    if isinstance(given, device | str | int):
        return given
    raise TypeError(
        "to() takes an element type, a device, a placement or a tensor, not "
        f"{type(given).__name__} {given!r}"
    )
