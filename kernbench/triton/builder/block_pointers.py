"""`tl.make_block_ptr`, `tl.advance`, and loads and stores through block pointers.

Triton has replaced them by tensor descriptors, and kernels that were written before have them. A
block pointer is a block of a tensor in memory: a load and a store are boxes, clipped along the axes
of `boundary_check`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from kernbench.triton import triton_api
from kernbench.triton.builder.builder_memory import MemoryDescriptor, loaded, on_host, stored
from kernbench.triton.indices.index_values import IndexValue

_language = triton_api.module("triton.language")


class BlockPointer:
    """A block of a tensor in memory, from `offsets` on; `dtype` is that of its pointer."""

    def __init__(self, tensor: MemoryDescriptor, offsets: tuple[Any, ...]) -> None:
        self.tensor, self.offsets = tensor, offsets
        self.dtype = self.type = tensor.base.dtype

    def advance(self, offsets: Sequence[Any]) -> "BlockPointer":
        """The block moved by elements along each axis."""
        moves = _numbers(offsets)
        if len(moves) != len(self.offsets):
            raise ValueError(
                f"tl.advance by {len(moves)} offsets: the block has {len(self.offsets)} axes"
            )
        moved = tuple(a + b for a, b in zip(self.offsets, moves, strict=True))
        return BlockPointer(self.tensor, moved)

    def place(self, boundary_check: Sequence[Any]) -> tuple[IndexValue, IndexValue]:
        """The pointers, and the mask of those inside the tensor along the axes that are checked."""
        checked = set(map(int, boundary_check))
        if not checked <= set(range(len(self.offsets))):
            raise ValueError(
                f"boundary_check {tuple(sorted(checked))}: the block has {len(self.offsets)} axes"
            )
        return self.tensor.block_of(self.offsets, checked)


def _numbers(given: Sequence[Any]) -> tuple[Any, ...]:
    tensors = [_language.core.to_tensor(each) for each in given]
    return tuple(on_host(each.handle).number for each in tensors)


def make_block_ptr(
    base: Any,
    shape: Sequence[Any],
    strides: Sequence[Any],
    offsets: Sequence[Any],
    block_shape: Sequence[Any],
    order: object,
) -> BlockPointer:
    """`tl.make_block_ptr`; `order` is a hint to a compiler."""
    del order
    block = tuple(int(getattr(each, "value", each)) for each in block_shape)
    lengths = {len(shape), len(strides), len(offsets), len(block)}
    if len(lengths) != 1:
        raise ValueError(
            f"tl.make_block_ptr of shape, strides, offsets and block_shape with {len(shape)}, "
            f"{len(strides)}, {len(offsets)} and {len(block)} axes: they are as many"
        )
    tensor = MemoryDescriptor(on_host(base.handle), _numbers(shape), _numbers(strides), block, None)
    return BlockPointer(tensor, _numbers(offsets))


def advance(base: BlockPointer, offsets: Sequence[Any]) -> BlockPointer:
    """`tl.advance`."""
    return base.advance(offsets)


def load_function(of_pointers: Callable[..., Any]) -> Callable[..., Any]:
    """`tl.load`; `of_pointers` loads through blocks of pointers."""

    def load(
        pointer: Any,
        mask: Any = None,
        other: Any = None,
        boundary_check: Sequence[Any] = (),
        padding_option: str = "",
        **options: Any,
    ) -> Any:
        if not isinstance(pointer, BlockPointer):
            _check_pointers("tl.load", boundary_check)
            return of_pointers(pointer, mask, other, **options)
        _check_masks("tl.load", mask, other)
        pointers, inside = pointer.place(boundary_check)
        scalar = pointer.dtype.element_ty
        padding = float("nan") if padding_option == "nan" else 0
        handle = loaded(pointers, inside, IndexValue.constant(scalar, padding, pointers.shape))
        return _language.tensor(handle, _language.block_type(scalar, list(pointers.shape)))

    return load


def store_function(of_pointers: Callable[..., Any]) -> Callable[..., Any]:
    """`tl.store`; `of_pointers` stores through blocks of pointers."""

    def store(
        pointer: Any,
        value: Any,
        mask: Any = None,
        boundary_check: Sequence[Any] = (),
        **options: Any,
    ) -> None:
        if not isinstance(pointer, BlockPointer):
            _check_pointers("tl.store", boundary_check)
            of_pointers(pointer, value, mask, **options)
            return
        _check_masks("tl.store", mask, None)
        pointers, inside = pointer.place(boundary_check)
        element = pointer.dtype.element_ty
        whole = _language.broadcast_to(_language.core.to_tensor(value), *pointers.shape)
        stored(pointers, whole.to(element).handle, inside)

    return store


def _check_pointers(name: str, boundary_check: Sequence[Any]) -> None:
    if boundary_check:
        raise ValueError(f"{name} with boundary_check: it is one of block pointers; use a mask")


def _check_masks(name: str, mask: object, other: object) -> None:
    if mask is not None or other is not None:
        raise ValueError(
            f"{name} through a block pointer with a mask or other: use boundary_check and "
            "padding_option"
        )
