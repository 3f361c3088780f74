"""Loads, stores and products of the builder."""

from collections.abc import Collection, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from kernbench.triton import triton_api
from kernbench.triton.builder.builder_arithmetic import operation, reinterpreted
from kernbench.triton.builder.builder_shapes import repeated
from kernbench.triton.builder.program import DeviceValue, Handle, TritonProgram, running
from kernbench.triton.indices.descriptors import (
    BlockTransfer,
    any_used,
    described_mask,
    stored_parts,
    transfer,
)
from kernbench.triton.indices.element_types import item_bytes, memory_type
from kernbench.triton.indices.index_arithmetic import moved
from kernbench.triton.indices.index_values import Affine, IndexValue
from kernbench.triton.tape.tape import (
    LoadCommand,
    Part,
    ProductCommand,
    StoreCommand,
    TapeBlock,
    TapeCounts,
    TapeStorage,
)
from runtime.core.dtypes import DType
from runtime.language.gemm import accumulator_type
from runtime.language.running import MathOptions
from runtime.language.value import Shape, row_major
from runtime.language.views import View

_language = triton_api.module("triton.language")


def on_host(value: Handle) -> IndexValue:
    """A value of the host side: the elements of a value in TCM are read, and waited for."""
    if isinstance(value, IndexValue):
        return value
    array = running().elements(value)
    scalar = value.dtype.scalar
    if not value.shape:
        return IndexValue.constant(scalar, array.reshape(-1)[0].item())
    return IndexValue(scalar, value.shape, array=np.broadcast_to(array, value.shape))


class BuilderMemory:
    """Addresses, loads, stores and products."""

    def create_addptr(self, pointer: Handle, offset: Handle) -> IndexValue:
        """Pointers moved by elements."""
        base = on_host(pointer)
        size = item_bytes(base.dtype.scalar.element_ty)
        return moved(base, on_host(offset), size)

    def create_int_to_ptr(self, value: Handle, dtype: Any) -> Handle:
        """Addresses that the program has read or computed."""
        return reinterpreted(on_host(value), dtype)

    def create_load(self, pointers: Handle, *_: object) -> Handle:
        """The elements behind pointers."""
        return loaded(pointers, None, None)

    def create_masked_load(
        self, pointers: Handle, mask: Handle, other: Handle | None, *_: object
    ) -> Handle:
        """The elements for which the mask is true, and those of `other`."""
        return loaded(pointers, mask, other)

    def create_store(self, pointers: Handle, value: Handle, *_: object) -> None:
        """Write elements."""
        stored(pointers, value, None)

    def create_masked_store(
        self, pointers: Handle, value: Handle, mask: Handle, *_: object
    ) -> None:
        """Write the elements for which the mask is true."""
        stored(pointers, value, mask)

    def create_dot(self, a: Handle, b: Handle, acc: Handle, *_: object) -> Handle:
        """A matrix product on the GEMM engine."""
        return multiplied(a, b, acc)

    def create_make_tensor_descriptor(
        self,
        base: Handle,
        shape: Sequence[Handle],
        strides: Sequence[Handle],
        block: Sequence[int],
        is_signed: bool,  # noqa: FBT001 - Triton's signature
        padding: Any = None,
    ) -> "MemoryDescriptor":
        """A tensor in memory."""
        del is_signed
        return MemoryDescriptor(
            on_host(base),
            tuple(on_host(each).number for each in shape),
            tuple(on_host(each).number for each in strides),
            tuple(block),
            padding,
        )

    def create_descriptor_load(
        self, descriptor: "MemoryDescriptor", indices: Sequence[Handle], *_: object
    ) -> Handle:
        """A block of a tensor; elements outside of it are the padding."""
        pointers, mask = descriptor.block_at(indices)
        scalar = pointers.dtype.scalar.element_ty
        padding = float("nan") if "NAN" in str(descriptor.padding) else 0
        if not scalar.is_floating():
            padding = 0
        return loaded(pointers, mask, IndexValue.constant(scalar, padding, pointers.shape))

    def create_descriptor_store(
        self, descriptor: "MemoryDescriptor", value: Handle, indices: Sequence[Handle]
    ) -> None:
        """Write a block of a tensor, without what is outside."""
        stored(*_reordered(descriptor.block_at(indices), value))


def _reordered(
    place: tuple[IndexValue, IndexValue], value: Handle
) -> tuple[IndexValue, Handle, IndexValue]:
    pointers, mask = place
    return pointers, value, mask


class MemoryDescriptor:
    """A tensor in memory, as the handle of Triton's tensor descriptors."""

    def __init__(
        self,
        base: IndexValue,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        block: tuple[int, ...],
        padding: Any,
    ) -> None:
        self.base, self.shape, self.strides = base, shape, strides
        self.block, self.padding = block, padding

    def block_at(self, indices: Sequence[Handle]) -> tuple[IndexValue, IndexValue]:
        """The pointers of a block, and the mask of those inside the tensor."""
        starts = [on_host(each).number for each in indices]
        return self.block_of(starts, range(len(starts)))

    def block_of(
        self, starts: Sequence[Any], checked: Collection[int]
    ) -> tuple[IndexValue, IndexValue]:
        """The pointers of a block, and the mask of those inside the tensor along `checked` axes."""
        size = memory_type(self.base.dtype.scalar.element_ty).itemsize
        first = self.base.number + size * sum(
            start * step for start, step in zip(starts, self.strides, strict=True)
        )
        steps = tuple(size * step for step in self.strides)
        pointers = IndexValue(self.base.dtype, self.block, affine=Affine(first, steps))
        box = tuple(
            (int(min(max(-start, 0), block)), int(min(max(length - start, 0), block)))
            if axis in checked
            else (0, block)
            for axis, (start, length, block) in enumerate(
                zip(starts, self.shape, self.block, strict=True)
            )
        )
        return pointers, IndexValue(_language.int1, self.block, box=box)


def loaded(pointers: Handle, mask: Handle | None, other: Handle | None) -> Handle:
    """The elements behind a block of pointers."""
    program, block = running(), on_host(pointers)
    scalar = block.dtype.scalar.element_ty
    dtype = memory_type(scalar)
    used = None if mask is None else on_host(mask)
    if not any_used(used):
        if other is not None:
            return other
        return IndexValue.constant(scalar, 0, block.shape)
    plan = transfer(block, used, dtype)
    storage = TapeStorage(plan.stored, dtype, pieces=not _is_one(plan))
    result = DeviceValue(scalar, TapeBlock(storage, plan.view), block.shape)
    described = partial(described_mask, used)
    program.add(LoadCommand(storage, plan.boxes, plan.rows, program.site(), described))
    program.count(plan.counts)
    if plan.rest == ():
        return result
    if other is None:
        # Else operations would read what TCM has there, which is no part of the program.
        other = IndexValue.constant(scalar, 0, block.shape)
    number = other.number if isinstance(other, IndexValue) else None
    if plan.rest is None or (plan.rest and number is None):
        assert mask is not None
        return operation("where", mask, result, other)
    for view in plan.rest:
        assert number is not None
        options = MathOptions(dtype=dtype, shape=view.shape)
        program.math("full", (number,), options, target=TapeBlock(storage, view))
    return result


def _is_one(plan: BlockTransfer) -> bool:
    """Whether one descriptor writes the whole storage."""
    views = [*(view for view, _, _ in plan.boxes), *(each.view for each in plan.rows)]
    return len(views) == 1 and views[0] == View(plan.stored, row_major(plan.stored))


def stored(pointers: Handle, value: Handle, mask: Handle | None) -> None:
    """Write a block behind pointers."""
    program, block = running(), on_host(pointers)
    dtype = memory_type(block.dtype.scalar.element_ty)
    used = None if mask is None else on_host(mask)
    if not any_used(used):
        return
    plan = transfer(block, used, dtype)
    whole = memory_operand(program, value, block.shape, dtype, packed=plan.order is None)
    parts = stored_parts(plan, source_of(whole, plan))
    count_parts(program, parts, block.numel)
    program.add(StoreCommand(whole, parts, partial(described_mask, used)))


def memory_operand(
    program: TritonProgram, value: Handle, shape: Shape, dtype: DType, *, packed: bool
) -> TapeBlock:
    """The elements of a value in TCM that go to memory as a block of `shape`."""
    whole = program.in_tcm(value).block
    if whole.shape != shape:
        whole = program.whole(program.in_tcm(repeated(value, shape)))
    if whole.dtype != dtype:
        whole = program.math("cast", (whole,), MathOptions(dtype=dtype))
    if packed and whole.view.strides != row_major(shape):
        whole = program.math("cat", (whole,))
    return whole


def count_parts(program: TritonProgram, parts: Sequence[Part], numel: int) -> None:
    """Count the descriptors of a block of `numel` elements."""
    single = sum(prod(view.shape) == 1 < numel for view, _, _ in parts)
    program.count(TapeCounts(boxes=len(parts) - single, elements=single))


def source_of(whole: TapeBlock, plan: BlockTransfer) -> View:
    """The elements of a store, with their axes in the order of memory."""
    shape, strides, offset = whole.view
    if plan.order is None:
        return View(plan.stored, row_major(plan.stored), offset)
    kept = [length == 1 or plan.view.shape[axis] > 1 for axis, length in enumerate(shape)]
    return View(
        plan.stored,
        tuple(strides[axis] if kept[axis] else 0 for axis in plan.order),
        offset,
    )


def multiplied(a: Handle, b: Handle, acc: Handle) -> Handle:
    """`acc + a @ b`, for matrices or batches of them."""
    program = running()
    first, second = (program.whole(program.in_tcm(each)) for each in (a, b))
    if first.dtype != second.dtype:
        program.fail(f"dot of {first.dtype.name} and {second.dtype.name}: types must be equal")
    if first.dtype.name in ("f64", "u8"):
        program.fail(
            f"dot of {first.dtype.name}: the GEMM engine has f16, bf16, f32, f8e4m3, f8e5m2 and i8"
        )
    summed = accumulator_type(first.dtype)
    is_zero = isinstance(acc, IndexValue) and acc.number == 0
    start = None if is_zero else _summed(program, acc, summed)
    if len(first.shape) == 3:
        block = _batched(program, first, second, start, summed)
    else:
        shape = first.shape[0], second.shape[1]
        block = TapeStorage(shape, summed).whole()
        program.add(ProductCommand(first, second, start, block))
    target = memory_type(acc.dtype.scalar)
    if target != summed:
        block = program.math("cast", (block,), MathOptions(dtype=target))
    return DeviceValue(acc.dtype.scalar, block)


def _summed(program: TritonProgram, acc: Handle, dtype: DType) -> TapeBlock:
    block = program.whole(program.in_tcm(acc))
    if block.dtype != dtype:
        block = program.math("cast", (block,), MathOptions(dtype=dtype))
    return block


def _batched(
    program: TritonProgram, a: TapeBlock, b: TapeBlock, acc: TapeBlock | None, dtype: DType
) -> TapeBlock:
    count, rows, columns = a.shape[0], a.shape[1], b.shape[2]
    target = TapeStorage((count, rows, columns), dtype, pieces=True)
    for index in range(count):
        parts = [None if each is None else _matrix(each, index) for each in (a, b, acc)]
        first, second, start = parts
        assert first is not None
        assert second is not None
        program.add(ProductCommand(first, second, start, _matrix(target.whole(), index)))
    return target.whole()


def _matrix(block: TapeBlock, index: int) -> TapeBlock:
    shape, strides, offset = block.view
    return TapeBlock(block.storage, View(shape[1:], strides[1:], offset + index * strides[0]))
