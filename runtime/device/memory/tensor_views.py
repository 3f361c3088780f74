"""Windows of tensors: other shapes, other element types and parts of the same memory, without
copies.

A window needs a flat tensor: one whose virtual range holds its elements in row-major order. Flat
are tensors on one PE, replicated ones, those split by rows, and all windows. Axes of length 1 can
be added and removed in every placement.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import Self, cast

from runtime.core.dtypes import DType
from runtime.device.memory.sizes import axis_of, inferred_shape, lengths_of
from runtime.device.memory.storage import Window
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.rank.tensor_memory import Shard
from runtime.model.placement import Span


class TensorViews(StoredTensor):
    """The methods that make windows. Writes through a window are writes to the tensor."""

    def view(
        self, *size: int | Sequence[int] | DType, offset: int = 0, numel: int | None = None
    ) -> Self:
        """The same elements with another shape, or the same bytes with another element type.

        `view(2, -1)` and `view((2, -1))`: one length may be -1. `view(dtype)` reads the bytes as
        another type; the last axis grows or shrinks with the size of an element. `view(dtype,
        offset, numel)` is a window with one axis of `numel` elements (by default all to the end),
        which begins `offset` bytes from the start of the tensor, as in `torch.frombuffer`.
        `RuntimeError` for a size that does not fit, and for a tensor that is not flat.
        """
        if size and isinstance(size[0], DType):
            dtype, *rest = size
            given = [offset, numel]
            for place, each in enumerate(rest[:2]):
                given[place] = cast("int", each)
            if given == [0, None] and not rest:
                return self._of_type(cast("DType", dtype))
            return self._of_bytes(cast("DType", dtype), cast("int", given[0]), given[1])
        return self._of_shape(inferred_shape(lengths_of("view", size), self.numel()))

    def reshape(self, *shape: int | Sequence[int]) -> Self:
        """`view`: kernbench makes no copy here; a tensor that is not flat is a `RuntimeError`."""
        return self._of_shape(inferred_shape(lengths_of("reshape", shape), self.numel()))

    def view_as(self, other: StoredTensor) -> Self:
        """A view with the shape of `other`."""
        return self.view(other.shape)

    def reshape_as(self, other: StoredTensor) -> Self:
        """A view with the shape of `other`."""
        return self.reshape(other.shape)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
        """A view with the axes `start_dim` to `end_dim` merged into one."""
        axes = len(self.shape)
        first, last = axis_of(start_dim, axes), axis_of(end_dim, axes)
        if first > last:
            raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
        merged = prod(self.shape[first : last + 1])
        return self._of_shape((*self.shape[:first], merged, *self.shape[last + 1 :]))

    def squeeze(self, dim: int | Sequence[int] | None = None) -> Self:
        """A view without the axes of length 1, or without those of them in `dim`."""
        axes = len(self.shape)
        given = range(axes) if dim is None else dim if isinstance(dim, Sequence) else [dim]
        chosen = {axis_of(each, axes) for each in given}
        kept = [n for axis, n in enumerate(self.shape) if n != 1 or axis not in chosen]
        return self._of_shape(tuple(kept))

    def unsqueeze(self, dim: int) -> Self:
        """A view with a further axis of length 1, which has the number `dim`."""
        axis = axis_of(dim, len(self.shape) + 1)
        return self._of_shape((*self.shape[:axis], 1, *self.shape[axis:]))

    def narrow(self, dim: int, start: int, length: int) -> Self:
        """The part [start, start + length) along an axis, as a view; all axes before it must have
        length 1.
        """
        axis = axis_of(dim, len(self.shape))
        if not self.shape:
            raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
        whole = self.shape[axis]
        if length < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        if not -whole <= start <= whole:
            problem = f"expected to be in range of [{-whole}, {whole}], but got {start}"
            raise IndexError(f"start out of range ({problem})")
        begin = start + whole if start < 0 else start
        if begin + length > whole:
            problem = f"start ({start}) + length ({length}) exceeds dimension size ({whole})"
            raise RuntimeError(f"{problem}.")
        if (begin, length) == (0, whole):
            return self._of_shape(self.shape)
        if prod(self.shape[:axis]) != 1:
            raise RuntimeError(
                f"narrow along axis {axis} of shape {self.shape}: the part has gaps in memory, and "
                "a window has none; use axis 0"
            )
        self._check_flat("narrow")
        inner = prod(self.shape[axis + 1 :]) * self.itemsize
        shape = (*self.shape[:axis], length, *self.shape[axis + 1 :])
        return self._window(self.dtype, begin * inner, shape)

    def split(self, split_size: int | Sequence[int], dim: int = 0) -> tuple[Self, ...]:
        """Views of parts of `split_size` along an axis, the last of which may be smaller; or of the
        sizes in a list. The axes before `dim` must have length 1.
        """
        axis = axis_of(dim, len(self.shape))
        if not self.shape:
            raise RuntimeError("split expects at least a 1-dimensional tensor")
        whole = self.shape[axis]
        sizes = list(_split_sizes(split_size, whole))
        parts: list[Self] = []
        start = 0
        for size in sizes:
            parts.append(self.narrow(axis, start, size))
            start += size
        return tuple(parts)

    def chunk(self, chunks: int, dim: int = 0) -> tuple[Self, ...]:
        """Views of at most `chunks` equal parts along an axis, the last of which may be smaller."""
        if chunks < 1:
            raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
        axis = axis_of(dim, len(self.shape))
        whole = self.shape[axis] if self.shape else 0
        # Of no element, PyTorch makes as many empty parts as it is called for.
        return self.split(-(-whole // chunks) if whole else [0] * chunks, axis)

    def unbind(self, dim: int = 0) -> tuple[Self, ...]:
        """Views of the elements along an axis, without that axis."""
        axis = axis_of(dim, len(self.shape))
        if not self.shape:
            raise RuntimeError("Dimension specified as 0 but tensor has no dimensions")
        rest = (*self.shape[:axis], *self.shape[axis + 1 :])
        rows = (self.narrow(axis, index, 1) for index in range(self.shape[axis]))
        return tuple(row.view(rest) for row in rows)

    def _of_shape(self, shape: tuple[int, ...]) -> Self:
        if self.is_flat:
            return self._window(self.dtype, 0, shape)
        if [n for n in shape if n != 1] != [n for n in self.shape if n != 1]:
            raise RuntimeError(
                "view size is not compatible with input tensor's size and stride (at least one "
                f"dimension spans across two contiguous subspaces): {self._placement()}; make a "
                "flat copy with x.to(torch.DPPolicy(...)) or x.clone(dp=...)"
            )
        # Axes of length 1 change no position in any shard.
        return self._with_unit_axes(self.dtype, shape)

    def _with_unit_axes(self, dtype: DType, shape: tuple[int, ...]) -> Self:
        """A view with further or fewer axes of length 1 and a type of the same size, of a tensor
        that is not flat.
        """
        if self.layout is not None and shape != self.shape:
            raise RuntimeError(f"view of shape {shape}: {self._placement()}")
        shards = tuple(
            Shard(
                replace(each.spec, spans=_respanned(each.spec.spans, self.shape, shape)),
                each.address,
            )
            for each in self.shards
        )
        window = Window(self.storage, self.address, shards, is_flat=False)
        return type(self)(
            self._state, window, shape=shape, dtype=dtype, policy=self.policy, layout=self.layout
        )

    def _of_type(self, dtype: DType) -> Self:
        size, old = dtype.itemsize, self.itemsize
        if size == old and not self.is_flat:
            return self._with_unit_axes(dtype, self.shape)
        if size == old:
            return self._window(dtype, 0, self.shape)
        self._check_flat("view")
        if not self.shape:
            raise RuntimeError(
                f"self.dim() cannot be 0 to view {self.dtype!r} as {dtype!r} (different element "
                "sizes)"
            )
        *outer, last = self.shape
        if last * old % size:
            raise RuntimeError(
                f"self.size(-1) must be divisible by {size // old} to view {self.dtype!r} as "
                f"{dtype!r} (different element sizes), but got {last}"
            )
        self._check_aligned(dtype, 0)
        return self._window(dtype, 0, (*outer, last * old // size))

    def _of_bytes(self, dtype: DType, offset: int, numel: int | None) -> Self:
        self._check_flat("view")
        available = self.nbytes - offset
        if not 0 <= offset <= self.nbytes:
            raise RuntimeError(
                f"view({dtype!r}): offset must be non-negative and no greater than the tensor's "
                f"length ({self.nbytes} bytes), but got {offset}"
            )
        self._check_aligned(dtype, offset)
        count = available // dtype.itemsize if numel is None else numel
        if numel is None and available % dtype.itemsize:
            raise RuntimeError(
                f"view({dtype!r}): the {available} bytes after the offset {offset} are no multiple "
                f"of the element size ({dtype.itemsize}); pass numel"
            )
        if count < 0 or count * dtype.itemsize > available:
            raise RuntimeError(
                f"view({dtype!r}): requested length {count * dtype.itemsize} bytes ({count} "
                f"elements) after the offset {offset} exceeds the tensor of {self.nbytes} bytes"
            )
        return self._window(dtype, offset, (count,))

    def _check_aligned(self, dtype: DType, offset: int) -> None:
        if (self.address + offset) % dtype.itemsize:
            position = self.address + offset - self.storage.address
            raise RuntimeError(
                f"self.storage_offset() must be divisible by {dtype.itemsize} bytes to view the "
                f"tensor as {dtype!r}, but got {position} bytes"
            )

    def _check_flat(self, function: str) -> None:
        if not self.is_flat:
            raise RuntimeError(f"{function}: {self._placement()}")

    def _placement(self) -> str:
        stored = (
            f"split by {self.policy}" if self.layout is None else f"stored in tiles ({self.layout})"
        )
        return f"a tensor of shape {self.shape} {stored} is not in row-major order in its memory"


def _split_sizes(split_size: object, whole: int) -> Iterable[int]:
    if isinstance(split_size, Sequence):
        sizes = [int(each) for each in cast("Sequence[int]", split_size)]
        if sum(sizes) != whole or any(size < 0 for size in sizes):
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {whole} (input tensor's "
                f"size at that dimension), but got split_sizes={sizes}"
            )
        return sizes
    size = cast("int", split_size)
    if size < 0 or (not size and whole):
        raise RuntimeError(
            f"split expects split_size be non-negative and greater than 0 unless the dimension is "
            f"empty, but got split_size={size}"
        )
    # An empty axis is one empty part.
    return [min(size, whole - start) for start in range(0, whole, size)] if whole else [0]


def _respanned(
    spans: tuple[Span, ...], old: tuple[int, ...], new: tuple[int, ...]
) -> tuple[Span, ...]:
    """The spans of the axes longer than 1, between those of the new axes of length 1."""
    kept = iter([span for span, length in zip(spans, old, strict=True) if length != 1])
    return tuple((0, 1) if length == 1 else next(kept) for length in new)
